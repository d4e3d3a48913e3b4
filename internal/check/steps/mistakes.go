package steps

// Mistakes are those that were published, W1 to W24 in their order, each with the step
// whose tests have it.
var Mistakes = []struct {
	Step int
	Name string
}{
	{2, "the znode is persistent"},
	{2, "compares itself with itself"},
	{2, "overlooks number zero"},
	{2, "returns after an error"},
	{2, "one queue for all locks"},
	{2, "the znode is made in the constructor"},
	{2, "waits by recursion"},
	{4, "trusts the wake-up"},
	{4, "asks if it exists"},
	{5, "one count for all locks"},
	{5, "counts only who waited"},
	{4, "forgets its znode"},
	{3, "makes its latch too late"},
	{5, "deletes the first"},
	{4, "wakes under the waiter's lock"},
	{2, "sorts by a piece of the guid"},
	{2, "sorts by the host's name"},
	{4, "tries, and stays"},
	{4, "waits for nobody"},
	{4, "compares a path with a name"},
	{4, "looks twice"},
	{4, "looks before the try"},
	{5, "takes an interrupt for the lock"},
	{4, "waits, whatever is there"},
}
