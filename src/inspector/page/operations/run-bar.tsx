import { useId, useState } from "preact/hooks";
import { initialValue } from "../form/initial-value.ts";
import { counted } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import type { OperationDesk } from "./operation-desk.ts";
import { PastInputs } from "./past-inputs.tsx";

/** What runs an operation, and what has to be said before; it stays in view below a long form. */
export function RunBar({ desk }: { readonly desk: OperationDesk }) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const { sample, inputSchema } = desk.operation;
  const isBusy = desk.isRunning || desk.isChecking;
  return (
    <div class="run-bar">
      {desk.unread !== undefined && (
        <p class="notice warn small">Something typed cannot be read yet. {visibleText(desk.unread, 300)}</p>
      )}
      {desk.isHeldBack && <HeldBack desk={desk} />}
      {desk.isConfirming && <Confirmation desk={desk} />}
      <div class="row">
        <button
          type="button"
          class={`run-button ${isBusy ? "danger" : "primary"}`}
          onClick={() => (isBusy ? desk.cancel() : void desk.start())}
          disabled={desk.unread !== undefined && !isBusy}
        >
          {isBusy ? "Cancel" : "Run"}{" "}
          <span class="keys" aria-hidden="true">
            {isBusy ? "Esc" : "Ctrl ↵"}
          </span>
        </button>
        {sample !== undefined && (
          <button type="button" onClick={() => desk.replace(sample)}>
            Fill in a sample
          </button>
        )}
        <button type="button" onClick={() => desk.replace(initialValue(inputSchema))}>
          Clear
        </button>
        <button type="button" popovertarget={id}>
          History
        </button>
      </div>
      <section
        popover="auto"
        class="history-list card"
        id={id}
        aria-label="Inputs run before"
        onBeforeToggle={({ currentTarget }) => placeAt(currentTarget)}
        onToggle={({ newState }) => setOpen(newState === "open")}
      >
        {isOpen && <PastInputs id={id} desk={desk} />}
      </section>
    </div>
  );
}

/** Puts a popover above or below its button, where there is more room. */
function placeAt(popover: HTMLElement): void {
  const button = document.querySelector(`[popovertarget="${popover.id}"]`);
  const { left = 0, top = 0, bottom = 0 } = button?.getBoundingClientRect() ?? {};
  const isAbove = top > window.innerHeight / 2;
  const { style } = popover;
  style.setProperty("--left", `${left}px`);
  style.top = isAbove ? "auto" : `${bottom + 4}px`;
  style.bottom = isAbove ? `${window.innerHeight - top + 4}px` : "auto";
}

function HeldBack({ desk }: { readonly desk: OperationDesk }) {
  return (
    <div class="notice warn row" role="alert">
      The input does not fit its schema: {counted(desk.issues.length, "problem")}. Correct what is marked, or
      <button type="button" onClick={() => void desk.start({ anyway: true })}>
        Run anyway
      </button>
    </div>
  );
}

const focus = (element: HTMLElement | null): void => element?.focus();

/** Asks, in place, whether an operation that may destroy something is to be run. */
function Confirmation({ desk }: { readonly desk: OperationDesk }) {
  return (
    <div class="notice bad row" role="alertdialog" aria-label="Run a destructive operation?">
      <span class="break">
        {visibleText(desk.operation.id, 200)} says that it may destroy something. Run it?
      </span>
      <button
        type="button"
        class="danger"
        onClick={() => void desk.start({ anyway: true, isConfirmed: true })}
      >
        Yes, run it
      </button>
      <button type="button" ref={focus} onClick={() => desk.set({ isConfirming: false })}>
        No
      </button>
    </div>
  );
}
