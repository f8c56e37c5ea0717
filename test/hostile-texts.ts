const ESC = "\u001b";
const BEL = "\u0007";
const ST = `${ESC}\\`;
const C1 = {
  CSI: "\u009b",
  OSC: "\u009d",
  DCS: "\u0090",
  ST: "\u009c",
  NEL: "\u0085",
  APC: "\u009f",
  PM: "\u009e",
  SOS: "\u0098",
};

/** What a line says that only our own output may begin with. */
export const FORGED = "waybill: FORGED";

/** Sequences that terminals act on. */
const SEQUENCES: readonly string[] = [
  `${ESC}[31m`,
  `${ESC}[5;7m`,
  `${ESC}[38;2;255;0;0m`,
  `${ESC}[8m`,
  `${ESC}[0m`,
  `${ESC}[2J`,
  `${ESC}[H`,
  `${ESC}[1A`,
  `${ESC}[2K`,
  `${ESC}[1G`,
  `${ESC}[999D`,
  `${ESC}[s`,
  `${ESC}[u`,
  `${ESC}[6n`,
  `${ESC}[c`,
  `${ESC}[>c`,
  `${ESC}[?1049h`,
  `${ESC}[?25l`,
  `${ESC}[?2004l`,
  `${ESC}[?1000h`,
  `${ESC}[21t`,
  `${ESC}[18t`,
  `${ESC}[5i`,
  `${ESC}[4i`,
  `${ESC}[!p`,
  `${ESC}[1;5r`,
  `${ESC}[3g`,
  `${ESC}[20h`,
  `${ESC}[1T`,
  `${ESC}[5S`,
  `${ESC}[1@`,
  `${ESC}[1P`,
  `${ESC}[1X`,
  `${ESC}[3J`,
  `${ESC}[>4;2m`,
  `${ESC}[=c`,
  `${ESC}[0;0H`,
  `${ESC}[1;31;5m`,
  `${ESC}[ q`,
  `${ESC}[?6h`,
  `${ESC}c`,
  `${ESC}7`,
  `${ESC}8`,
  `${ESC}D`,
  `${ESC}M`,
  `${ESC}E`,
  `${ESC}=`,
  `${ESC}>`,
  `${ESC}(0`,
  `${ESC}#8`,
  `${ESC}%G`,
  `${ESC}N`,
  `${ESC}O`,
  `${ESC}Z`,
  `${ESC}]0;title${BEL}`,
  `${ESC}]0;title${ST}`,
  `${ESC}]2;title${BEL}`,
  `${ESC}]4;1;rgb:ff/00/00${BEL}`,
  `${ESC}]7;file:///etc${ST}`,
  `${ESC}]8;;https://evil.example${BEL}click${ESC}]8;;${BEL}`,
  `${ESC}]8;;https://evil.example${ST}click${ESC}]8;;${ST}`,
  `${ESC}]8;id=1;javascript:alert(1)${ST}x${ESC}]8;;${ST}`,
  `${ESC}]9;notify${BEL}`,
  `${ESC}]10;?${BEL}`,
  `${ESC}]11;?${ST}`,
  `${ESC}]50;font${BEL}`,
  `${ESC}]52;c;ZXZpbA==${BEL}`,
  `${ESC}]52;c;ZXZpbA==${ST}`,
  `${ESC}]52;p;?${BEL}`,
  `${ESC}]133;A${ST}`,
  `${ESC}]777;notify;a;b${BEL}`,
  `${ESC}]1337;File=inline=1:AAAA${BEL}`,
  `${ESC}]1337;SetUserVar=a=b${BEL}`,
  `${ESC}]5522;x${ST}`,
  `${ESC}P+q544e${ST}`,
  `${ESC}P$q"p${ST}`,
  `${ESC}Pq#0;2;0;0;0${ST}`,
  `${ESC}_Gf=100;AAAA${ST}`,
  `${ESC}^private${ST}`,
  `${ESC}Xstring${ST}`,
  `${ESC}ktitle${ST}`,
  `${C1.CSI}31m`,
  `${C1.CSI}2J`,
  `${C1.CSI}6n`,
  `${C1.OSC}0;title${C1.ST}`,
  `${C1.OSC}52;c;ZXZpbA==${BEL}`,
  `${C1.OSC}8;;https://evil.example${C1.ST}x`,
  `${C1.DCS}+q544e${C1.ST}`,
  `${C1.APC}Gf=1${C1.ST}`,
  `${C1.PM}x${C1.ST}`,
  `${C1.SOS}x${C1.ST}`,
  "\u0084",
  "\u008d",
  "\u008e",
  "\u0080",
  "\u0099",
];

/** Single characters that terminals act on, or that make text read as something else. */
const CHARACTERS: readonly string[] = [
  "\u0000",
  "\u0001",
  "\u0003",
  "\u0004",
  "\u0005",
  BEL,
  "\b\b\b\b",
  "\u000b",
  "\u000c",
  "\u000e",
  "\u000f",
  "\u0011",
  "\u0013",
  "\u0018",
  "\u001a",
  "\u001c",
  "\u007f",
  "\u202a",
  "\u202b",
  "\u202c",
  "\u202d",
  "\u202eevil",
  "\u2066",
  "\u2067",
  "\u2068",
  "\u2069",
  "\u200e",
  "\u200f",
  "\u061c",
];

/** Ways to begin a line that looks like ours. */
const LINES: readonly string[] = [
  `\n${FORGED}`,
  `\r${FORGED}`,
  `\r\n${FORGED}`,
  `\u2028${FORGED}`,
  `\u2029${FORGED}`,
  `${C1.NEL}${FORGED}`,
  `\u000b${FORGED}`,
  `\u000c${FORGED}`,
  `${ESC}E${FORGED}`,
  `${ESC}[1E${FORGED}`,
];

/** Sequences that do not end, split ones, and ones that are made by taking others out. */
const TRICKS: readonly string[] = [
  `${ESC}${ESC}[31m[31m`,
  `${ESC}[3\u0000${ESC}[31m1m`,
  `${ESC}\u200b[31m`,
  `\u202e${ESC}\u202c[31m`,
  `${ESC}[31${ESC}[0m;5m`,
  `${C1.CSI}${C1.CSI}31m`,
  `\ud800${ESC}[31m`,
  `${ESC}[${"1;".repeat(200)}m`,
  `${ESC}[31`,
  `${ESC}[`,
  ESC,
  C1.CSI,
  `${ESC}]0;open`,
  `${C1.OSC}0;open`,
  `${ESC}P open`,
  `${ESC}]8;;https://evil.example`,
];

/** Texts of a server that means no good: more than a hundred. */
export const HOSTILE_TEXTS: readonly string[] = [...SEQUENCES, ...CHARACTERS, ...LINES, ...TRICKS];

/** What our own output may hold on a terminal: the colours we use, and what the moving line of progress is made of. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const OURS = /\u001b\[(?:1|2|22|31|32|33|36|39)m|\r?\u001b\[2K|\u001b\[\?25[lh]/g;

const ACTED_ON =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/** Finds the first thing in an output that a terminal would act on, with what stands around it; nothing in a good one. */
export function actedOn(output: string, isTerminal: boolean): string | undefined {
  const rest = isTerminal ? output.replaceAll("\r\n", "\n").replaceAll(OURS, "") : output;
  const at = rest.search(ACTED_ON);
  return at === -1 ? undefined : JSON.stringify(rest.slice(Math.max(0, at - 60), at + 30));
}
