package model

// action is one thing that can happen. Given a state, it finds the states that may follow: none, if it cannot
// happen in that state. tell.go fills in the names in braces.
type action struct {
	name string
	do   func(m *model, s state, found func(state))
}

// explore counts these actions when it looks for the shortest order.
var actions = []action{
	{"A sends {next}", aSends},
	{"A sends something else", aSendsOther},
	{"A has the answer to {to A}", aHasAnswer},
	{"A's connection breaks; A reconnects with {next}", aComesBackWithHandshake},
	{"A's connection breaks; A reconnects to another server", aComesBack},
	{"A's connection breaks; A reconnects to a server of the deposed leader", aComesBackToDeposed},
	{"A's connection breaks; A reconnects to a server that grants half the timeout", aComesBackForHalf},

	{"{server} gets {at server}, and {passes it on}", serverGetsRequest},
	{"{server} gets {at server}, and forgets that it has heard of A", serverForgets},
	{"{server} hears of A", serverGetsOther},
	{"{server} passes the answer to {down} on to A", serverPassesAnswer},
	{"the follower gets {at follower} from the observer, and passes it on", followerPassesUp},
	{"the follower passes the answer to {down at follower} on to the observer", followerPassesDown},
	{"the follower gets the observer's report: it has heard of A", followerGetsReport},
	{"the follower answers {leader}'s question: it has {heard 0} of A", followerAnswers},
	{"the observer answers the follower's question: it has {heard 1} of A", observerAnswers},

	{"{leader} gets {at leader}, and {answers}", leaderGetsRequest},
	{"{leader} hears of A", leaderGetsOther},
	{"{leader} gets the follower's report: it has heard of A", leaderGetsReport},
	{"{real leader} has not heard of A for too long, and decides to end its session", leaderDecides},
	{"{real leader} {why}ends A's session", leaderEnds},
	{"the follower is paused", followerStands},
	{"the follower resumes", followerGoesOn},
	{"the leader is paused", leaderStands},
	{"the leader resumes", leaderGoesOn},

	{"the follower is cut off from the leader", followerIsCutOff},
	{"the others elect a new leader; it gives A's session a whole timeout", othersElect},
}

// clockwork are the actions that happen by themselves when their time has come. They are not counted.
var clockwork = []action{
	{"time passes", timePasses},
	{"time passes, and A is paused", timePassesWithoutA},
	{"{leader} asks the follower: of whom have you heard?", leaderAsks},
	{"the follower asks the observer: of whom have you heard?", followerAsks},
	{"A's client sends its ping", clientPings},
}
