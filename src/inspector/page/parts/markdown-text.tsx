import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { truncateText } from "../../../core/text/truncate-text.ts";
import { isSafeAddress, PlainText, SafeLink } from "./plain-text.tsx";
import { visibleText } from "./show.ts";

/** Characters that are read at all. */
const MOST_CHARACTERS = 20_000;

/** A text of somebody else that may be Markdown: elements for its marks, links to http(s) alone, and no HTML or image from it. */
export function MarkdownText({
  text,
  most = 600,
}: {
  readonly text: string;
  /** Characters that are shown at first. @default 600 */
  readonly most?: number;
}) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > most;
  const shown = isWhole || !isLong ? truncateText(text, MOST_CHARACTERS) : beginningOf(text, most);
  const blocks = useMemo(() => readMarkdown(shown), [shown]);
  return (
    <div class="markdown stack tight">
      {blocks.map(drawBlock)}
      {isLong && (
        <button type="button" class="quiet small" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`}
        </button>
      )}
    </div>
  );
}

/** The beginning of a text, to the end of a paragraph, of a sentence or of a word, and with no link cut in two. */
export function beginningOf(text: string, most: number): string {
  const head = truncateText(text, most);
  const isEnough = (at: number): boolean => at >= most / 2;
  const paragraph = head.lastIndexOf("\n\n");
  if (isEnough(paragraph)) return head.slice(0, paragraph);
  const sentence = Math.max(head.lastIndexOf(". "), head.lastIndexOf(".\n")) + 1;
  const end = isEnough(sentence) ? sentence : Math.max(head.lastIndexOf(" "), head.lastIndexOf("\n"));
  const cut = isEnough(end) ? head.slice(0, end) : head;
  const link = cut.lastIndexOf("[");
  const kept = isEnough(link) && link > cut.lastIndexOf(")") ? cut.slice(0, link) : cut;
  return `${kept.trimEnd()} …`;
}

/** One line of somebody else's text that may have Markdown in it: code, emphasis and links, as in a paragraph. */
export function MarkdownLine({ text }: { readonly text: string }) {
  return <span class="markdown">{readInline(text).map(drawInline)}</span>;
}

function drawBlock(block: Block, key: number): ComponentChildren {
  switch (block.kind) {
    case "heading":
      return (
        <p key={key}>
          <strong>{block.parts.map(drawInline)}</strong>
        </p>
      );
    case "paragraph":
      return <p key={key}>{block.parts.map(drawInline)}</p>;
    case "quote":
      return <blockquote key={key}>{block.parts.map(drawInline)}</blockquote>;
    case "code":
      return (
        <pre key={key} class="sheet">
          {visibleText(block.text)}
        </pre>
      );
    case "list": {
      const List = block.isOrdered ? "ol" : "ul";
      return (
        <List key={key}>
          {block.items.map((item, index) => (
            <li key={index}>{item.map(drawInline)}</li>
          ))}
        </List>
      );
    }
  }
}

function drawInline(part: Inline, key: number): ComponentChildren {
  switch (part.kind) {
    case "text":
      return <PlainText key={key} text={part.text} most={MOST_CHARACTERS} hasLinks />;
    case "code":
      return <code key={key}>{visibleText(part.text)}</code>;
    case "strong":
      return <strong key={key}>{part.parts.map(drawInline)}</strong>;
    case "em":
      return <em key={key}>{part.parts.map(drawInline)}</em>;
    case "link": {
      const words = visibleText(wordsOf(part.parts));
      const isWeb = isSafeAddress(part.address);
      const where = isWeb ? new URL(part.address).host : part.address;
      // What leads somewhere says where, unless its words are that already: they may name another place.
      return (
        <bdi key={key} class="break">
          {isWeb ? <SafeLink address={part.address} text={words} /> : words}
          {words !== part.address && <span class="soft"> ({visibleText(where, 200)})</span>}
        </bdi>
      );
    }
  }
}

function wordsOf(parts: readonly Inline[]): string {
  return parts.map((part) => ("text" in part ? part.text : wordsOf(part.parts))).join("");
}

/** A piece of a line of Markdown. */
export type Inline =
  | { readonly kind: "text" | "code"; readonly text: string }
  | { readonly kind: "strong" | "em"; readonly parts: readonly Inline[] }
  /** `address` is as it stands there: nothing is a link until it was checked. */
  | { readonly kind: "link"; readonly parts: readonly Inline[]; readonly address: string };

/** A block of Markdown. */
export type Block =
  | { readonly kind: "paragraph" | "heading" | "quote"; readonly parts: readonly Inline[] }
  | { readonly kind: "list"; readonly isOrdered: boolean; readonly items: readonly (readonly Inline[])[] }
  | { readonly kind: "code"; readonly text: string };

const FENCE = /^ {0,3}(?:`{3,}|~{3,})/;
const HEADING = /^ {0,3}#{1,6} +/;
const ITEM = /^ {0,8}(?:[-*+]|(\d{1,9})[.)]) +/;
const QUOTE = /^ {0,3}> ?/;
const RULE = /^ {0,3}(?:[-*_] *){3,}$/;
const MOST_LINES = 2_000;

/**
 * Reads the part of Markdown that descriptions use: paragraphs, headings, lists, quotes, code, emphasis and links. HTML, images and
 * everything else stay the text they are. Takes time in proportion to the text.
 */
export function readMarkdown(text: string): readonly Block[] {
  const blocks: Block[] = [];
  let open: string[] = [];
  let kind: "paragraph" | "quote" = "paragraph";
  const close = (): void => {
    if (open.length > 0) blocks.push({ kind, parts: readInline(open.join("\n")) });
    open = [];
    kind = "paragraph";
  };
  let items: (readonly Inline[])[] | undefined;
  let code: string[] | undefined;
  for (const line of text.split(/\r\n?|\n/, MOST_LINES)) {
    if (code !== undefined) {
      if (FENCE.test(line)) {
        blocks.push({ kind: "code", text: code.join("\n") });
        code = undefined;
      } else code.push(line);
      continue;
    }
    const item = ITEM.exec(line);
    if (item === null || RULE.test(line)) items = undefined;
    if (FENCE.test(line)) {
      close();
      code = [];
    } else if (line.trim() === "" || RULE.test(line)) close();
    else if (HEADING.test(line)) {
      close();
      const parts = readInline(withoutClosing(line.replace(HEADING, "")));
      blocks.push({ kind: "heading", parts });
    } else if (item !== null) {
      close();
      if (items === undefined) {
        items = [];
        blocks.push({ kind: "list", isOrdered: item[1] !== undefined, items });
      }
      items.push(readInline(line.slice(item[0].length)));
    } else {
      const isQuote = QUOTE.test(line);
      if (isQuote !== (kind === "quote")) close();
      kind = isQuote ? "quote" : "paragraph";
      open.push(isQuote ? line.replace(QUOTE, "") : line);
    }
  }
  close();
  if (code !== undefined) blocks.push({ kind: "code", text: code.join("\n") });
  return blocks;
}

/** The text of a heading without the number signs that may close it, which stand behind a space. */
function withoutClosing(heading: string): string {
  const text = heading.trimEnd();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return end === 0 || text[end - 1] === " " ? text.slice(0, end).trimEnd() : text;
}

const MOST_LEVELS = 4;
/** Characters that one piece may span: what is longer is the text it is, so that a line of stars takes no longer than any other. */
const MOST_SPAN = 500;
const MARKED = /[`*_[\\]/g;

/** Reads one line, or several that belong together. */
export function readInline(text: string, level = 0): readonly Inline[] {
  const parts: Inline[] = [];
  let plain = "";
  const take = (part: Inline): void => {
    if (plain !== "") parts.push({ kind: "text", text: plain });
    plain = "";
    parts.push(part);
  };
  let at = 0;
  while (at < text.length) {
    MARKED.lastIndex = at;
    const next = MARKED.exec(text)?.index ?? text.length;
    plain += text.slice(at, next);
    at = next;
    if (at >= text.length) break;
    const found = level < MOST_LEVELS ? readMark(text, at, level) : undefined;
    if (found === undefined) {
      // A backslash makes the mark behind it the character it is.
      const isEscape = text[at] === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "");
      plain += isEscape ? text[at + 1] : text[at];
      at += isEscape ? 2 : 1;
    } else {
      take(found.part);
      at = found.end;
    }
  }
  if (plain !== "") parts.push({ kind: "text", text: plain });
  return parts;
}

interface Mark {
  readonly part: Inline;
  readonly end: number;
}

function readMark(text: string, at: number, level: number): Mark | undefined {
  const mark = text[at];
  if (mark === "`") return readCode(text, at);
  if (mark === "[") return text[at - 1] === "!" ? undefined : readLink(text, at, level);
  if (mark !== "*" && mark !== "_") return undefined;
  const isStrong = text[at + 1] === mark;
  const sign = isStrong ? mark + mark : mark;
  const from = at + sign.length;
  // Within a word an underscore is one, as in names.
  if (/\s/.test(text[from] ?? " ") || (mark === "_" && /\w/.test(text[at - 1] ?? ""))) return undefined;
  const end = within(text, from).indexOf(sign) + from;
  if (end <= from || /\s/.test(text[end - 1] ?? "")) return undefined;
  const after = end + sign.length;
  if (mark === "_" && /\w/.test(text[after] ?? "")) return undefined;
  const parts = readInline(text.slice(from, end), level + 1);
  return { part: { kind: isStrong ? "strong" : "em", parts }, end: after };
}

function readCode(text: string, at: number): Mark | undefined {
  const [ticks = ""] = /^`+/.exec(text.slice(at, at + 10)) ?? [];
  const from = at + ticks.length;
  const end = within(text, from).indexOf(ticks) + from;
  if (end < from) return undefined;
  return { part: { kind: "code", text: text.slice(from, end).trim() }, end: end + ticks.length };
}

/** Addresses hold no space and no bracket here; a title behind one is left out. */
const TARGET = /^\]\(\s{0,4}<?([^\s<>()]{1,2000})>?(?:\s{1,4}(?:"[^"]{0,300}"|'[^']{0,300}'))?\s{0,4}\)/;

function readLink(text: string, at: number, level: number): Mark | undefined {
  const from = at + 1;
  const end = within(text, from).search(/[[\]]/) + from;
  // Brackets in brackets are no link, but the inner ones may be.
  if (end < from || text[end] !== "]") return undefined;
  const target = TARGET.exec(text.slice(end, end + 2_700));
  if (target?.[1] === undefined) return undefined;
  const parts = readInline(text.slice(from, end), level + 1);
  return { part: { kind: "link", parts, address: target[1] }, end: end + target[0].length };
}

function within(text: string, from: number): string {
  return text.slice(from, from + MOST_SPAN);
}
