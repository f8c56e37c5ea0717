import { useMemo } from "preact/hooks";
import { findChanges } from "../../../core/text/find-changes.ts";
import { truncateText } from "../../../core/text/truncate-text.ts";
import type { LockView } from "../../protocol.ts";
import { useSession } from "../page-session.ts";
import { Badge, CopyButton, MoreList } from "../parts/controls.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { showCount, visibleText } from "../parts/show.ts";
import { pastedWord } from "../result/copy-as.tsx";

/** Tools whose differences are open at first. */
const MOST_OPEN = 3;

/** How the tools of a source compare with those that were approved, and what to do about those that differ. */
export function LockPanel({
  lock: { tools },
  name,
  isUp,
}: {
  readonly lock: LockView;
  /** Of the source. */
  readonly name: string;
  /** Whether the source has told its tools. */
  readonly isUp: boolean;
}) {
  const { words, flags } = useSession().hello.command;
  const command = `${words} lock --approve ${pastedWord(name)}${/^(?:-c|--config|--mcp)\b/.test(flags) ? ` ${flags}` : ""}`;
  if (tools.length === 0) {
    return <p>{isUp ? <Badge tone="ok">✓ all tools are as approved</Badge> : <Badge>locked</Badge>}</p>;
  }
  return (
    <div class="stack">
      <div class="row small">
        <Badge tone="warn">{showCount(tools.length, "tool")} not approved</Badge>
        Calls are refused until you approve:
        <code class="break">{command}</code>
        <CopyButton label="Copy command" text={() => command} />
      </div>
      <MoreList
        label="Tools that are not approved"
        items={tools}
        draw={({ tool, state, diff }, index) => (
          <details open={index < MOST_OPEN && state === "changed"}>
            <summary>
              <code>
                <PlainText text={tool} most={200} />
              </code>{" "}
              <Badge tone={state === "new" ? "note" : "warn"}>{state}</Badge>
            </summary>
            <MoreList label="What is different" items={diff} draw={(one) => <Difference {...one} />} />
          </details>
        )}
      />
    </div>
  );
}

const TAGS = { "-": "del", "+": "ins", " ": "span" } as const;
/** Characters that are the same on both sides, and shown next to what differs. */
const AROUND = 120;

function Difference({ path, before, after }: LockView["tools"][number]["diff"][number]) {
  const parts = useMemo(() => diffTexts(before, after), [before, after]);
  return (
    <>
      <code class="soft">
        <PlainText text={path || "/"} most={300} />
      </code>
      <pre class="diff">
        {parts.map(({ sign, text }, index) => {
          const Tag = TAGS[sign];
          const hidden = sign === " " ? text.length - 2 * AROUND : 0;
          return (
            <Tag key={index}>
              {visibleText(hidden > 0 ? text.slice(0, AROUND) : text)}
              {hidden > 0 && (
                <>
                  <small class="soft"> … {showCount(hidden, "character")} the same … </small>
                  {visibleText(text.slice(-AROUND))}
                </>
              )}
            </Tag>
          );
        })}
      </pre>
    </>
  );
}

/** A piece of two texts that are compared: of the first alone, of the second alone, or of both. */
interface DiffPart {
  readonly sign: "-" | "+" | " ";
  readonly text: string;
}

/** Characters of one side that are compared. */
const MOST_CHARACTERS = 20_000;

/** Compares two texts word by word; one side may be missing. */
export function diffTexts(before = "", after = ""): readonly DiffPart[] {
  const [a, b] = [wordsOf(before), wordsOf(after)];
  const parts: DiffPart[] = [];
  let end = 0;
  for (const { from, to, fromB, toB } of findChanges(a, b)) {
    parts.push({ sign: " ", text: a.slice(end, from).join("") });
    parts.push({ sign: "-", text: a.slice(from, to).join("") });
    parts.push({ sign: "+", text: b.slice(fromB, toB).join("") });
    end = to;
  }
  parts.push({ sign: " ", text: a.slice(end).join("") });
  return parts.filter(({ text }) => text !== "");
}

function wordsOf(text: string): readonly string[] {
  return laidOut(truncateText(text, MOST_CHARACTERS)).match(/\n *| ?\w+|\W/gu) ?? [];
}

/** Breaks JSON at its members, for people; nothing but line ends and indentation is added, so nothing that differs can hide. */
export function laidOut(text: string): string {
  if (!/^[{[]/.test(text)) return text;
  let depth = 0;
  return text.replace(/"(?:[^"\\]|\\.)*"?|\{\}|\[\]|[{}[\],]/gs, (found) => {
    if (!/^[{}[\],]$/.test(found)) return found;
    depth += found === "," ? 0 : /[{[]/.test(found) ? 1 : -1;
    const lineEnd = `\n${"  ".repeat(Math.max(0, Math.min(depth, 20)))}`;
    return /[}\]]/.test(found) ? lineEnd + found : found + lineEnd;
  });
}
