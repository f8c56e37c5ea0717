import { useEffect, useRef } from "preact/hooks";
import { InputEditor } from "../form/input-editor.tsx";
import { useKeys } from "../session.ts";
import type { OperationDesk } from "./operation-desk.ts";
import { RunBar } from "./run-bar.tsx";
import { RunOutput } from "./run-output.tsx";

/** A group of radio buttons has no focus of its own. */
const MARKED = "[aria-invalid=true]:not(div), [aria-invalid=true] input";

/** The input of an operation, what runs it, and what came of it. */
export function RunPanel({ desk }: { readonly desk: OperationDesk }) {
  const input = useRef<HTMLElement>(null);
  const { isHeldBack, restored } = desk;
  // A try that was held back leads to the first field that is marked.
  useEffect(() => {
    if (isHeldBack) input.current?.querySelector<HTMLElement>(MARKED)?.focus();
  }, [isHeldBack]);
  useRunKeys(desk);
  return (
    <div class="run">
      <section class="stack" aria-label="Input" ref={input}>
        {restored && (
          <p class="notice small" role="status">
            What you typed before is here again{restored.isPartial && "; secret fields were left empty"}.
          </p>
        )}
        <InputEditor
          key={desk.turn}
          schema={desk.operation.inputSchema}
          value={desk.value}
          onChange={(value) => desk.edit(value)}
          onInvalid={(unread) => desk.set({ unread })}
          issues={desk.issues}
        />
        <RunBar desk={desk} />
      </section>
      <section class={`stack run-output ${desk.run === undefined ? "" : "has-run"}`} aria-label="Outcome">
        <RunOutput desk={desk} />
      </section>
    </div>
  );
}

/**
 * Ctrl+Enter and Cmd+Enter run from anywhere beside the list. Escape takes back the question, or ends the call; in a
 * search it clears that, and a popover it closes alone.
 */
function useRunKeys(desk: OperationDesk): void {
  useKeys((event) => {
    const { key, ctrlKey, metaKey, isComposing } = event;
    const target = event.target as Element;
    if (isComposing || document.querySelector(":popover-open") !== null) return;
    if (key === "Enter" && (ctrlKey || metaKey) && target.matches("body, .operation *")) {
      event.preventDefault();
      void desk.start();
    }
    if (key !== "Escape" || target.matches("[type=search]")) return;
    if (desk.isConfirming) desk.set({ isConfirming: false });
    else desk.cancel();
  }, desk);
}
