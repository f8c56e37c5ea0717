import { useMemo } from "preact/hooks";
import type { LockView } from "../../protocol.ts";
import { Badge } from "../parts/badge.tsx";
import { CopyButton } from "../parts/copy-button.tsx";
import { MoreList } from "../parts/more-list.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { counted } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { shellWord } from "../result/shell-word.ts";
import { useSession } from "../session.ts";
import { diffTexts } from "./text-diff.ts";

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
  const command = `${words} lock --approve ${shellWord(name)}${/^(?:-c|--config|--mcp)\b/.test(flags) ? ` ${flags}` : ""}`;
  if (tools.length === 0) {
    return <p>{isUp ? <Badge tone="ok">✓ all tools are as approved</Badge> : <Badge>locked</Badge>}</p>;
  }
  return (
    <div class="stack">
      <div class="row small">
        <Badge tone="warn">{counted(tools.length, "tool")} not approved</Badge>
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
                  <small class="soft"> … {counted(hidden, "character")} the same … </small>
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
