import { stemmer } from "stemmer";

/** Letters of a word that count: longer ones are no words, and are compared by their beginning. */
const MAX_WORD = 40;

/** Words that say nothing about what is looked for. */
const EMPTY = new Set(
  (
    "a about all also am an and any are as at be been but by can could did do does for from had has have how i if in into " +
    "is it its let me my not of on or our please shall should so some that the their them then there these they this " +
    "those to us want was we were what when where which while whose will with would you your"
  ).split(" "),
);

/** Verbs that people use for one another of tools. A word may stand in several rows. */
const VERBS = [
  "create add new insert make register",
  "create open raise report submit",
  "delete remove destroy drop erase clear",
  "list show browse display enumerate",
  "get read fetch retrieve show view load",
  "find search lookup look query grep",
  "update change edit modify set patch alter rename",
  "run execute start trigger launch invoke dispatch",
  "rerun restart retry repeat redo",
  "stop cancel abort end terminate kill",
  "open navigate visit goto",
  "close shut resolve",
  "send post publish share",
  "download export save",
  "upload import attach",
  "copy clone duplicate fork",
  "move transfer relocate",
  "connect link relate join associate",
  "convert transform translate",
  "compare diff difference",
  "combine merge join bundle pack package",
  "compress zip gzip shrink",
  "wait pause sleep delay",
  "check verify validate test",
  "enable activate",
  "disable deactivate",
  "click press hit tap",
  "choose pick select",
  "ask prompt question elicit",
  "invite invitation",
  "assign assignee",
  "lock freeze",
  "block ban",
  "follow watch subscribe",
  "approve accept allow confirm",
  "reject deny decline dismiss refuse",
  "schedule plan book reserve",
  "summarize summary overview digest",
  "remember memorize memory store",
  "encode encrypt",
  "decode decrypt",
  "multiply mul product times",
  "subtract sub minus",
  "divide div quotient",
  "remainder modulo mod",
] as const;

/** Things that people use different words for, and what is often written short. */
const THINGS = [
  "latest newest recent last",
  "current now today",
  "previous back",
  "number count amount many",
  "size big large",
  "limit quota rate",
  "left remaining rest",
  "repository repo project",
  "organization organisation org company",
  "user person people member account somebody someone who",
  "issue bug ticket problem",
  "pull merge pr",
  "branch ref reference",
  "job build run task",
  "comment note remark",
  "label tag",
  "star favorite bookmark like",
  "directory dir folder",
  "disk drive filesystem local",
  "documentation docs doc manual",
  "image picture photo img screenshot",
  "page website site web",
  "url link address website",
  "dialog alert box popup modal",
  "database db",
  "row record entry",
  "column field",
  "environment env",
  "configuration config setting preference option",
  "authenticate auth login signin sign",
  "key secret token password credential",
  "permission right access",
  "message msg",
  "mail email",
  "chat channel conversation thread",
  "event meeting appointment",
  "notification alert",
  "reply answer response",
  "information info detail",
  "function method",
  "parameter param argument arg",
  "application app",
  "javascript js",
  "typescript ts",
  "error fault failure exception",
] as const;

/** What stands for a row of these rows among words: no word begins like it. */
const MEANING = "~";

/** The stem of a word; the algorithm leaves "add" and makes "ad" of "adding". */
function stemOf(word: string): string {
  return stemmer(word).replace(/([b-df-hj-np-tv-z])\1$/, "$1");
}

const meaningsOf = new Map<string, string[]>();
for (const row of [...VERBS, ...THINGS]) {
  const words = [...new Set(row.split(" ").map((word) => stemOf(word)))];
  for (const word of words) {
    meaningsOf.set(word, [...(meaningsOf.get(word) ?? []), `${MEANING}${words[0]}`]);
  }
}

const verbs = new Set(VERBS.flatMap((row) => row.split(" ").map((word) => stemOf(word))));

/** Whether a word says what is to be done. */
export function isVerb(word: string): boolean {
  return verbs.has(stemOf(word));
}

/** The words that name what most people want of a thing: to make one, and to see those there are. */
export const PLAIN_VERBS: ReadonlySet<string> = new Set(
  ["create", "list", "get"].map((word) => stemOf(word)),
);

/** Whether a term stands for words of one meaning, not for a word. */
export function isMeaning(term: string): boolean {
  return term.startsWith(MEANING);
}

/** The words of a text in the order they come, no more than `most`: names are split at case, punctuation and digits, and given whole as well. */
export function splitWords(text: string, most: number): readonly string[] {
  const words: string[] = [];
  for (const [run] of text.matchAll(/[\p{L}\p{M}\p{N}]+/gu)) {
    if (words.length >= most) break;
    const whole = run.slice(0, MAX_WORD);
    const parts = whole.match(/\p{N}+|\p{Lu}+(?!\p{Ll})|\p{Lu}?[^\p{Lu}\p{N}]+|\p{L}/gu) ?? [];
    words.push(whole.toLowerCase());
    if (parts.length > 1) words.push(...parts.map((part) => part.toLowerCase()));
  }
  return words.slice(0, most);
}

/** A word as it is searched for: its stem, and what stands for its meanings. */
export function termsOf(word: string): readonly string[] {
  const stem = stemOf(word);
  return [stem, ...(meaningsOf.get(stem) ?? [])];
}

/** The words of a query that say something; all of them where none does. */
export function queryWords(query: string, most: number): readonly string[] {
  const words = [...new Set(splitWords(query, most * 4))];
  const telling = words.filter((word) => !EMPTY.has(word));
  return (telling.length > 0 ? telling : words).slice(0, most);
}
