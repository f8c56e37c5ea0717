import { isPlainObject } from "../../core/json/json-value.ts";
import { textBlock, textOf } from "../../core/result/call-tool-result.ts";

/** The revision that brought audio, and the one that brought links and structured content. */
const AUDIO_SINCE = "2025-03-26";
const LINKS_SINCE = "2025-06-18";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Writes the blocks of a tool result, or of the messages of a prompt, as a client of an older revision knows them, one for one: its SDK
 * refuses the whole answer over a kind it does not know. A link becomes text, audio an embedded resource. Structured content, which such
 * a client passes over, is shown as text where no text shows it.
 */
export function forRevision<T>(answer: T, revision: string | undefined): T {
  if (revision === undefined || revision >= LINKS_SINCE || !isPlainObject(answer)) return answer;
  const { content, messages, structuredContent } = answer as Fields;
  if (Array.isArray(messages)) {
    const older = messages.map((message: unknown, index) =>
      isPlainObject(message)
        ? { ...message, content: olderBlock(message["content"], revision, index) }
        : message,
    );
    return { ...answer, messages: older };
  }
  if (!Array.isArray(content)) return answer;
  const older = content.map((block, index) => olderBlock(block, revision, index));
  const data = structuredContent === undefined ? undefined : JSON.stringify(structuredContent);
  const isShown = data === undefined || older.some((block) => isData(textOf(block), data, structuredContent));
  return { ...answer, content: isShown ? older : [...older, textBlock(data)] };
}

/** Text is data where it is its JSON, a string as it is, or the one member of `{ result }`. */
function isData(text: string | undefined, json: string, value: unknown): boolean {
  if (text === undefined) return false;
  return (
    text === json ||
    json === `{"result":${text}}` ||
    json === `{"result":${JSON.stringify(text)}}` ||
    text === value
  );
}

function olderBlock(block: unknown, revision: string, index: number): unknown {
  if (!isPlainObject(block)) return block;
  if (block["type"] === "resource_link") {
    const { annotations } = block;
    return { ...textBlock(toLinkText(block)), ...(annotations !== undefined && { annotations }) };
  }
  if (block["type"] !== "audio" || revision >= AUDIO_SINCE) return block;
  const { data, mimeType, type: _, ...rest } = block;
  return {
    ...rest,
    type: "resource",
    resource: { uri: `waybill://block/${index}`, mimeType, blob: data },
  };
}

function toLinkText({ uri, name, title, description, mimeType, size }: Fields): string {
  const facts = [mimeType, typeof size === "number" ? `${size.toLocaleString("en-US")} bytes` : undefined];
  const shown = facts.filter((fact) => typeof fact === "string").join(", ");
  const label = `${String(title ?? name)}: ${String(uri)}${shown === "" ? "" : ` (${shown})`}`;
  return typeof description === "string" ? `${label}\n${description}` : label;
}
