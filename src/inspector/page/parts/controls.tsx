import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import type { OperationRow } from "../../protocol.ts";
import type { ApiError } from "../connection/api.ts";
import { type Asked, useSession } from "../page-session.ts";
import { PlainText } from "./plain-text.tsx";
import { visibleText } from "./show.ts";
import { ownOf } from "./show-json.ts";

/** Says that something is on its way. */
function Loading({ what }: { readonly what: string }) {
  return (
    <div class="notice row" role="status">
      <span class="spinner" aria-hidden="true" />
      <span>Loading {what}…</span>
    </div>
  );
}

/** Says of what is asked for why it is not there: it is on its way, or it failed. */
export function PendingNotice({
  value,
  error,
  again,
  what,
}: Pick<Asked<unknown>, "value" | "error" | "again"> & { readonly what: string }) {
  if (error !== undefined) return <Failed error={error} again={again} />;
  return value === undefined ? <Loading what={what} /> : null;
}

/** Says that there is nothing, and what to do about it. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="notice empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

/** Says what went wrong, and offers to try again. */
function Failed({ error, again }: { readonly error: ApiError; readonly again?: (() => void) | undefined }) {
  return (
    <div class="notice bad" role="alert">
      <span class="break">
        {error.message} <span class="soft small">({error.failure.code})</span>
      </span>
      {again !== undefined && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What a badge means by its colour; what it says is in its text, too. */
export type Tone = "plain" | "ok" | "warn" | "bad" | "note" | "accent";

/** A short word with a ground of its own. */
export function Badge({
  tone = "plain",
  children,
  title,
  sign,
}: {
  readonly tone?: Tone;
  readonly children: ComponentChildren;
  readonly title?: string;
  /** Stands before it, for those who see it. @default none */
  readonly sign?: string;
}) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {sign && [<span aria-hidden="true">{sign}</span>, " "]}
      {sign === undefined ? children : <span class="word">{children}</span>}
    </span>
  );
}

/** Copies a text; it is made when it is asked for. */
export function CopyButton({
  label,
  text,
  what = label,
}: {
  readonly label: string;
  readonly text: () => string;
  /** What is said to have been copied. @default the label */
  readonly what?: string;
}) {
  const { say } = useSession();
  const copy = (): void => {
    writeClipboard(text()).then(
      () => say(`Copied: ${what}.`),
      () => say("The browser does not allow copying here."),
    );
  };
  return (
    <button type="button" onClick={copy}>
      {label}
    </button>
  );
}

/** Browsers offer the clipboard on secure origins alone; elsewhere a selection is copied. */
async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (!isCopied) throw new Error();
}

/** Names and what is known under each; what is not known, or empty, is left out. */
export function Facts({
  facts,
}: {
  readonly facts: readonly (readonly [name: string, value: ComponentChildren])[];
}) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) =>
        value === undefined || value === "" ? null : (
          <>
            <dt>{name}</dt>
            <dd>{typeof value === "string" ? <PlainText text={value} most={1_000} /> : value}</dd>
          </>
        ),
      )}
    </dl>
  );
}

const FIRST = 10;
const MORE = 100;

/** A list of which the beginning is drawn, and more on demand. */
export function MoreList<T>({
  items,
  draw,
  label,
  first = FIRST,
}: {
  readonly items: readonly T[];
  readonly draw: (item: T, index: number) => ComponentChildren;
  /** For screen readers. */
  readonly label: string;
  /** Items that are drawn at first. @default 10 */
  readonly first?: number;
}) {
  const list = useRef<HTMLUListElement>(null);
  const [most, setMost] = useState(first);
  const left = items.length - most;
  const more = Math.min(left, MORE);
  const show = (): void => {
    setMost(most + more);
    // The button is about to go: the focus stays nearby.
    if (left <= MORE) list.current?.focus();
  };
  return (
    <>
      <ul class="more-list" aria-label={label} tabIndex={-1} ref={list}>
        {items.slice(0, most).map((item, index) => (
          <li key={index}>{draw(item, index)}</li>
        ))}
      </ul>
      {left > 0 && (
        <button type="button" class="quiet small" onClick={show}>
          Show {left <= MORE ? "all" : `${MORE} more of`} {items.length.toLocaleString("en")}
        </button>
      )}
    </>
  );
}

/** One of several panels. */
export interface Tab {
  readonly key: string;
  readonly label: ComponentChildren;
  readonly panel: () => ComponentChildren;
}

/** Shows one of several panels; arrow keys, Home and End move between their tabs. */
export function Tabs({
  label,
  tabs,
  chosen,
  onChoose,
}: {
  /** For screen readers. */
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly chosen: string;
  readonly onChoose: (key: string) => void;
}) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const at = Math.max(
    0,
    tabs.findIndex(({ key }) => key === chosen),
  );
  const move = (event: KeyboardEvent): void => {
    const steps = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 };
    const wanted = ownOf(steps, event.key);
    if (typeof wanted !== "number") return;
    const next = (wanted + tabs.length) % tabs.length;
    const key = tabs[next]?.key;
    if (key === undefined) return;
    event.preventDefault();
    onChoose(key);
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  const shown = tabs[at];
  return (
    <div class="stack">
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {tabs.map(({ key, label: title }, index) => (
          <button
            type="button"
            role="tab"
            key={key}
            id={`${id}-${index}`}
            aria-selected={index === at}
            aria-controls={index === at ? `${id}-panel` : undefined}
            tabIndex={index === at ? 0 : -1}
            onClick={() => onChoose(key)}
          >
            {title}
          </button>
        ))}
      </div>
      {shown !== undefined && (
        <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${at}`} key={shown.key}>
          {shown.panel()}
        </div>
      )}
    </div>
  );
}

/** Whether an operation reads, changes something, or streams; and whether it may destroy. */
export function TypeBadge({
  type,
  isDestructive = false,
}: {
  readonly type: OperationRow["type"];
  /** @default false */
  readonly isDestructive?: boolean | undefined;
}) {
  const tone = type === "mutation" ? "warn" : "plain";
  return (
    <>
      {isDestructive && <Badge tone="bad">destructive</Badge>}
      <Badge tone={type === "subscription" ? "note" : tone}>{visibleText(type, 20)}</Badge>
    </>
  );
}
