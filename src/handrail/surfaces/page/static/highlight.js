// Colours the words of a line of code: comments, strings, numbers and keywords of common languages.

import { el } from "./dom.js";

const C_LIKE = "auto bool break case catch char class const constexpr continue default delete do double else enum explicit export extends extern final finally float for friend func function go goto if implements import in inline instanceof int interface let long namespace new null nullptr operator package private protected public return short signed sizeof static struct super switch template this throw throws true try typedef typename union unsigned using var virtual void volatile while yield async await of undefined false type fn impl match mod move mut pub ref self Self trait use where crate dyn loop chan defer fallthrough map range select string error abstract assert boolean byte synchronized transient object val fun when companion data override open internal lateinit";
const WORDS = {
  c: C_LIKE,
  python: "and as assert async await break class continue def del elif else except finally for from global if import in is lambda match case None nonlocal not or pass raise return self True False try while with yield",
  ruby: "alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true undef unless until when while yield",
  shell: "case do done elif else esac export fi for function if in local return set then until while cd echo exit source trap unset",
  sql: "select from where insert into values update set delete create table drop alter index join left right inner outer on group by order having limit and or not null primary key references as distinct union all case when then else end",
  data: "true false null yes no on off",
  markup: "",
};
const LANGUAGES = {
  c: "c cc cpp cs cxx dart go h hpp java js jsx kt kts m mjs php rs scala swift ts tsx zig css scss less",
  python: "py pyi pyx bzl",
  ruby: "rb ex exs lua pl pm",
  shell: "sh bash zsh fish mk dockerfile makefile",
  sql: "sql",
  data: "json toml yaml yml ini cfg conf",
  markup: "html htm xml svg vue md",
};
const HASH_COMMENTS = new Set(["python", "ruby", "shell", "data"]);
const byExtension = new Map(Object.entries(LANGUAGES).flatMap(([name, all]) => all.split(" ").map((each) => [each, name])));
const keywords = new Map(Object.entries(WORDS).map(([name, all]) => [name, new Set(all.split(" "))]));
const LONGEST = 2000;

export function languageOf(path) {
  const name = path.split("/").pop().toLowerCase();
  return byExtension.get(name.includes(".") ? name.split(".").pop() : name) ?? "";
}

const TOKEN = {
  hash: /(#.*$)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/g,
  slash: /(\/\/.*$|\/\*.*?(?:\*\/|$)|^\s*\*\s.*$)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/g,
  dash: /(--.*$)|('(?:[^'])*'?)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/g,
  markup: /(<!--.*?(?:-->|$))|("[^"]*"?)|(\b\d[\w.]*\b)|(<\/?[\w:-]+|\/?>)/g,
};

// Return the parts of a line, as text and as elements.
export function coloured(text, language) {
  if (!language || text.length > LONGEST) return [text];
  const shape = language === "markup" ? "markup" : language === "sql" ? "dash" : HASH_COMMENTS.has(language) ? "hash" : "slash";
  const known = keywords.get(language);
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(TOKEN[shape])) {
    const [whole, comment, string, number, word] = found;
    const lower = language === "sql" ? whole.toLowerCase() : whole;
    const kind = comment ? "c" : string ? "s" : number ? "n" : word && (known.has(lower) || shape === "markup") ? "k" : "";
    if (!kind) continue;
    if (found.index > at) parts.push(text.slice(at, found.index));
    parts.push(el("span", { class: `hl-${kind}` }, whole));
    at = found.index + whole.length;
  }
  parts.push(text.slice(at));
  return parts;
}
