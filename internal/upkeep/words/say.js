"use strict";
// The language of a page. What it says is a text that Go has made, {en, zh}, or a key of
// zh-CN.txt with what is put into it: words.go does the same.

let reader = "en", chinese = {}; // the sentences by the English ones

// say is a sentence in the reader's language. A value that is put into it is a number, a
// text, or a string, which may be a key, too.
function say(sentence, ...values) {
  if (typeof sentence !== "string") return sentence[reader];
  const format = reader === "zh" ? chinese[sentence] ?? sentence : sentence;
  if (!values.length) return format;
  let next = 0;
  return format.replace(/%(?:\[(\d+)\])?([dsv%])/g, (verb, at, kind) => {
    if (kind === "%") return "%";
    if (at) next = at - 1;
    const value = values[next++];
    return typeof value === "number" ? value : say(value);
  });
}
