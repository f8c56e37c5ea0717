/** What nobody sees, or sees as something else: controls, formats, private use, unassigned, odd spaces, ignorables. */
const HIDDEN =
  /(?! )[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u00b7]/gu;
/** Two spaces and more, and those at either end. */
const SPACES = /^ +| {2,}| +$/g;
const WORD = /[\p{L}\p{M}\p{N}]+/gu;
/** Letters of other scripts that read as Latin ones. */
const FOREIGN =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}]/gu;
const LATIN = /\p{Script=Latin}/u;
/** Those of them that by themselves make whole words that read as Latin. */
const LOOKALIKE_WORD = /^[авекмнорстухѕіјһԁԛԝѵґАВЕКМНОРСТУХЅІЈԌԚԜοανικρτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]+$/u;
/** Latin letters that read as plain ones, and marks that could have been part of their letter. */
const ODD_LATIN = /[ɑɡɩıȷǀɴʀʏ]|(?<=[A-Za-z])\p{M}/gu;

/**
 * Writes a text in one line so that no two texts look the same: what hides is `\u{…}`, so are letters that pass for others, line
 * breaks and backslashes are escaped, spaces that would not be noticed are dots.
 */
export function visibleText(text: string): string {
  return visibleJson(text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\t", "\\t"));
}

/** The same for a text that has its escapes already. */
export function visibleJson(json: string): string {
  return json
    .replace(HIDDEN, escaped)
    .replace(SPACES, (found) => "·".repeat(found.length))
    .replace(WORD, showLookalikes);
}

function showLookalikes(word: string): string {
  if (/^[\w]+$/.test(word)) return word;
  if (LOOKALIKE_WORD.test(word)) return word.replace(/./gu, escaped);
  const letters = LATIN.test(word) ? word.replace(FOREIGN, escaped) : word;
  return letters
    .replace(ODD_LATIN, escaped)
    .replace(/[^\0-\x7f]/gu, (found) =>
      /^[\0-\x7f]+$/.test(found.normalize("NFKC")) ? escaped(found) : found,
    );
}

function escaped(found: string): string {
  return `\\u{${(found.codePointAt(0) as number).toString(16)}}`;
}
