import { useEffect, useState } from "preact/hooks";
import type { LogLineView } from "../../protocol.ts";
import { useAsked, useSession } from "../page-session.ts";
import { Badge, MoreList, PendingNotice, type Tone } from "../parts/controls.tsx";
import { JsonTree } from "../parts/json-tree.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { showTime, visibleText } from "../parts/show.ts";

/** How often it is asked for again while it is open. */
const AGAIN_MS = 2_000;

const TYPES: Readonly<Record<LogLineView["type"], readonly [tone: Tone, sign: string, word: string]>> = {
  sent: ["accent", "→", "sent"],
  received: ["note", "←", "received"],
  stderr: ["plain", "!", "stderr"],
};

/** The log of a source, newest first: its messages of JSON-RPC, and what its process wrote on standard error. */
export function SourceLog({ name }: { readonly name: string }) {
  const { api } = useSession();
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Log</summary>
      {isOpen && <OpenLog name={name} key={name} api={api} />}
    </details>
  );
}

function OpenLog({
  name,
  api,
}: {
  readonly name: string;
  readonly api: ReturnType<typeof useSession>["api"];
}) {
  const [kind, setKind] = useState("");
  const asked = useAsked((signal) => api.log(name, 0, signal), [api, name]);
  const { again, value } = asked;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) again();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [value]);
  const lines = value?.lines.filter(({ type }) => kind === "" || (type === "stderr") === (kind === "stderr"));
  return (
    <div class="stack tight">
      <PendingNotice {...asked} what="the log" />
      {lines !== undefined && (
        <>
          <label class="row small">
            Show
            <select value={kind} onChange={({ currentTarget }) => setKind(currentTarget.value)}>
              <option value="">Everything</option>
              <option value="stderr">Standard error</option>
              <option value="messages">Messages (JSON-RPC)</option>
            </select>
          </label>
          <LogLines lines={lines.toReversed()} label={`Log of ${visibleText(name, 60)}, newest first`} />
        </>
      )}
    </div>
  );
}

/** Lines of a log; a message is opened to be read. */
export function LogLines({
  lines,
  label,
}: {
  readonly lines: readonly LogLineView[];
  readonly label: string;
}) {
  if (lines.length === 0) return <p class="soft small">Nothing is remembered yet.</p>;
  return (
    <div class="log-lines">
      <MoreList label={label} first={50} items={lines} draw={(line) => <Line key={line.n} line={line} />} />
    </div>
  );
}

function Line({ line }: { readonly line: LogLineView }) {
  const [isOpen, setOpen] = useState(false);
  const { at, type, method } = line;
  const [tone, sign, word] = TYPES[type];
  const head = (
    <>
      <span class="mono soft">{showTime(at)}</span>{" "}
      <Badge tone={tone} sign={sign}>
        {word}
      </Badge>{" "}
    </>
  );
  if ("omitted" in line)
    return (
      <p class="small">
        {head}
        {method !== undefined && <code>{visibleText(method, 200)}</code>}{" "}
        <span class="soft">{line.omitted === "too-long" ? "too long to be kept" : "not kept any more"}</span>
      </p>
    );
  if (type === "stderr")
    return (
      <p class="small">
        {head}
        <code>
          <PlainText text={String(line.value)} most={500} />
        </code>
      </p>
    );
  return (
    <details class="small" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {head}
        <code>{visibleText(method ?? "answer", 200)}</code>
      </summary>
      {isOpen && <JsonTree value={line.value} label={`Message ${line.n}`} openDepth={3} />}
    </details>
  );
}
