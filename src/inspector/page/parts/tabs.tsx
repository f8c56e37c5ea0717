import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import { ownOf } from "./json-text.ts";

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
