// The words for the events of the recorder, and for the commands of the user.

// The user's commands, as the buttons name them.
const COMMANDS = {
  lock: text("Lock", "加锁"), unlock: text("Unlock", "解锁"), again: text("Lock again", "再次加锁"),
  giveup: text("Give up", "放弃"), read: text("Read", "读"), put: text("Write to store", "写入存储"),
  kill: text("Kill", "杀掉"), stop: text("Stop", "停住"), continue: text("Continue", "恢复运行"),
  cut: text("Cut connection", "切断连接"), restore: text("Restore connection", "恢复连接"),
  losecreate: text("Lose create reply", "丢失 create 响应"), losedelete: text("Lose delete reply", "丢失 delete 响应"),
  delaylist: text("Delay next list", "推迟下次列目录的响应"),
};
const FAULTS = {
  killserver: text("Kill", "杀掉"), stopserver: text("Stop", "停住"), cutserver: text("Cut off", "切断"),
  restoreserver: text("Restore", "恢复"),
};

// tokenName returns a token in short form, as ShortToken does. Of a long token it is the end, where tokens differ.
const tokenName = (token) => token > 999 ? "…" + String(token).slice(-3) : String(token);

const clientName = (i) => say(`client ${i}`, `客户端 ${i}`);

// actionName returns the words for an action of the user.
function actionName({ do: what, n, client }) {
  if (what === "lesson") return say(`lesson ${n}`, `第 ${n} 课`);
  if (what === "pause") return say(`stop client ${client} for ${n} s`, `让客户端 ${client} 停住 ${n} 秒`);
  if (what === "delete") return say("delete the znode by hand", "手工删除 znode");
  if (what === "add") return say(`add ${n}`, `添加 ${n} 个`);
  if (FAULTS[what]) return say(`server ${n}: ${FAULTS[what].en}`, `服务器 ${n}：${FAULTS[what].zh}`);
  if (client === undefined && what === "unlock") return say("all holders: Unlock", "所有持有者：解锁");
  if (client === undefined) return say(`all: ${COMMANDS[what].en}`, `全部：${COMMANDS[what].zh}`);
  return say(`client ${client}: ${COMMANDS[what].en}`, `客户端 ${client}：${COMMANDS[what].zh}`);
}

const phaseTitle = (p) => p.action ? capital(actionName(p.action)) : say(p.title);

// clientNames names several clients.
function clientNames(all) {
  if (all.length === 1) return clientName(all[0]);
  if (all.length > 8) return say(`${all.length} clients`, `${all.length} 个客户端`);
  const first = all.slice(0, -1), last = all.at(-1);
  return say(`clients ${first.join(", ")} and ${last}`, `客户端 ${first.join("、")} 和 ${last}`);
}

// tell returns the sentence for an event of the recorder.
function tell(e) {
  const who = e.clients ? clientNames(e.clients) : "", { text: error } = e;
  const sentence = {
    acted: () => say(`You: ${actionName(e.action)}.`, `你：${actionName(e.action)}。`),
    arrived: () => e.again ? say(`${deed(e)}, repeatedly.`, `${deed(e)}，反复多次。`) : say(`${deed(e)}.`, `${deed(e)}。`),
    lost: () => say(`${deed(e)}, but the reply is lost: ${who} does not know it.`, `${deed(e)}，但响应丢失了：${who} 不知道。`),
    state: () => stateSentence(e),
    wrote: () => writeSentence(e.write),
    gone: () => e.clients ? say(`${e.znode}, which belonged to ${who}, is deleted.`, `${e.znode}（属于${who}）已被删除。`) : say(`${e.znode} is deleted.`, `${e.znode} 已被删除。`),
    expired: () => !e.znode ? say(`The server has heard nothing from ${who} for 5 s, and ends its session.`,
      `服务器已有 5 秒没有收到${who} 的消息，于是结束它的会话。`) : say(`The server has heard nothing from ${who} for 5 s, and ends its session: ${e.znode} is deleted.`,
      `服务器已有 5 秒没有收到${who} 的消息，于是结束它的会话：${e.znode} 已被删除。`),
    warns: () => e.banner.breaks ? say(`Wrong: ${bannerText(e.banner)}.`, `有问题：${bannerText(e.banner)}。`) : say(`${bannerText(e.banner)}.`, `${bannerText(e.banner)}。`),
    ended: () => error ? say(`${who} has ended by itself: ${error}.`, `${who} 自己结束了：${error}。`) : say(`${who} has ended by itself, and printed no error.`, `${who} 自己结束了，没有打印任何错误。`),
    printed: () => say(`${who} prints: ${error}`, `${who} 打印：${error}`),
    failed: () => `${actionName(e.action)}: ${error}`,
    late: () => say(`The list for ${who} arrives late, in 3 s.`, `发给${who} 的列表会迟到：3 秒以后才到。`),
    later: () => say(`${who} is stopped: it will do that when it continues.`, `${who} 已停住：它恢复运行以后才会执行。`),
  }[e.what]();
  const name = e.znode; // it begins with a small letter, even at the beginning of a sentence
  return brief((name && sentence.startsWith(name) ? sentence : capital(sentence)).replace(/客户端 (?=[\u4e00-\u9fff])/g, "客户端"));
}

// brief shortens the names of znodes in a text. It keeps the part in which they differ, and so much of a guid as is drawn.
const brief = (words, guid = 0) => words.replace(/_c_([0-9a-f]+)-/g, (_, id) => `_c_${id.slice(0, guid)}…-`).replace(/([-_])0{6,}(?=\d)/g, "$1…");

// deed says what has arrived at one or several clients. The verb is in the past tense, in which it
// has the same form for one client and for several.
function deed({ clients, frame: { did, first } }) {
  const who = clientNames(clients);
  return first ? say(`${who}, first in the queue, ${did.en}`, `排在第一的${who} ${did.zh}`) : say(`${who} ${did.en}`, `${who} ${did.zh}`);
}

function stateSentence({ clients: [client], state, text: error, token, again }) {
  const i = clientName(client), is = stateName(state);
  if (error && state === "told that it lost the lock") return say(`${i} is notified: ${error}.`, `${i} 得知锁已经丢了。`);
  if (error) return say(`${i} gets an error: ${error}.`, `${i} 得到错误：${error}。`);
  if (state === "idle") return say(`${i} has given up.`, `${i} 放弃了等待。`);
  const inChinese = { holds: "持有锁", reads: "持有读锁" }[state] ?? is;
  if (again) return say(`${i} has locked again, and still ${is}.`, `${i} 再次加锁，仍然${inChinese}。`);
  return token ? say(`${i} ${is}, with the token ${tokenName(token)}.`, `${i} ${inChinese}，令牌是 ${tokenName(token)}。`) : say(`${i} now ${is}.`, `${i} 现在${inChinese}。`);
}

// verdict says how the store has answered a write. A write that is late and accepted does harm.
function verdict({ ok, late }) {
  if (!ok) return say("refused: a later holder has written", "被拒绝：后来的持有者已经写过");
  return late ? say("accepted, too late", "被接受，可是太晚了") : say("accepted", "被接受");
}

// storeSays names the client of a write and says how the store has answered.
const storeSays = (w) => `${clientName(w.client)}${say(": ", "：")}${w.ok ? verdict(w) : say("refused, too late", "被拒绝，太晚了")}`;

function writeSentence(w) {
  if (!w.token) return say(`${clientName(w.client)} writes to the store: ${verdict(w)}.`, `${clientName(w.client)} 写入存储：${verdict(w)}。`);
  return say(`${clientName(w.client)} writes to the store with the token ${tokenName(w.token)}: ${verdict(w)}.`, `${clientName(w.client)} 带着令牌 ${tokenName(w.token)} 写入存储：${verdict(w)}。`);
}

// bannerText says what is wrong.
function bannerText({ wrong, clients, znode }) {
  const i = clients ? clientName(clients[0]) : "", blocks = znode && say(`the znode ${brief(znode)} blocks everybody`, `名为 ${brief(znode)} 的 znode 挡住了所有客户端`);
  return {
    "two inside": () => say(`${clientNames(clients)} believe at the same time that they hold the lock`,
      `${clientNames(clients)} 同时认为自己持有锁`),
    "blocks: of nobody": () => say(`${blocks}: it belongs to nobody here`, `${blocks}：它不属于这里的任何人`),
    "blocks: of a dead client, and nobody deletes it": () => say(`${blocks}: ${i}, which created it, has crashed, and no client will delete it`,
      `${blocks}：创建它的${i} 已崩溃，没有客户端会删除它`),
    "blocks: of a dead client, and the server does not know it yet": () => say(`${blocks}: its owner, ${i}, has crashed, and the server does not know it yet`,
      `${blocks}：它属于${i}，${i} 已崩溃，服务器还不知道`),
    "blocks: of a client that has been dead for long": () => say(`${blocks}: its owner, ${i}, crashed long ago`, `${blocks}：它属于${i}，${i} 早已崩溃`),
    "blocks: of a client that does not know it": () => say(`${blocks}: it belongs to ${i}, which does not know of it`, `${blocks}：它属于${i}，${i} 却不知道`),
    "blocks: of a client that waits with a newer one": () => say(`${blocks}: it is an old one of ${i}, which waits with a newer one`,
      `${blocks}：它是${i} 的旧 znode，${i} 正在用新的 znode 等待`),
    "blocks: of a client that neither waits nor holds": () => say(`${blocks}: it belongs to ${i}, which neither waits for the lock nor holds it`, `${blocks}：它属于${i}，${i} 既不在等锁，也不持有锁`),
    "has lost it: learns it when it resumes": () => say(`${i} has lost the lock and is stopped: it will be notified when it continues`,
      `${i} 已经丢了锁，但它停住了：它恢复运行以后才会得知`),
    "holds it, and has no znode": () => say(`${i} believes that it holds the lock, and has created no znode`,
      `${i} 以为自己持有锁，却没有创建过 znode`),
    "has lost it: is not notified": () => say(`${i} has lost the lock, and does not know it: its znode has been deleted`,
      `${i} 已经丢了锁，自己却不知道：它的 znode 已被删除`),
  }[wrong]();
}
