/** What people see in the end on a terminal that got a text. */
export interface Screen {
  /** Without spaces at the end; lines longer than the terminal are wrapped. */
  readonly lines: readonly string[];
  readonly isCursorShown: boolean;
}

/** What our own output may hold: colours, cursor on and off, erase the line, back to its beginning. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const OURS = /\u001b\[(?:[0-9;]*m|\?25[lh]|2K|K|J|0J|1G|\d*[ABCDG])/y;

/** Shows a text as a terminal does; throws at a control that we do not use. */
export function showScreen(text: string): Screen {
  const lines: string[][] = [[]];
  let [row, column, isCursorShown] = [0, 0, true];
  for (let at = 0; at < text.length; ) {
    OURS.lastIndex = at;
    const [control] = OURS.exec(text) ?? [];
    if (control !== undefined) {
      if (control.endsWith("25l")) isCursorShown = false;
      if (control.endsWith("25h")) isCursorShown = true;
      if (control.endsWith("2K")) lines[row] = [];
      at += control.length;
      continue;
    }
    const sign = String.fromCodePoint(text.codePointAt(at) as number);
    at += sign.length;
    if (sign === "\r") column = 0;
    else if (sign === "\n") {
      row += 1;
      lines[row] ??= [];
    } else if (sign < " " && sign !== "\t") throw new Error(`The terminal got ${JSON.stringify(sign)}.`);
    else {
      const line = lines[row] as string[];
      while (line.length < column) line.push(" ");
      line[column++] = sign;
    }
  }
  const shown = lines.map((line) => line.join("").trimEnd());
  while (shown.at(-1) === "") shown.pop();
  return { lines: shown, isCursorShown };
}
