import { useEffect, useId, useRef, useState } from "preact/hooks";
import { initialValue } from "../form/initial-value.ts";
import { InputEditor } from "../form/input-editor.tsx";
import { useKeys, useSession } from "../page-session.ts";
import { CopyButton } from "../parts/controls.tsx";
import { showAgo, showCount, visibleText } from "../parts/show.ts";
import { toHash } from "../router.ts";
import type { PastInput } from "./input-history.ts";
import { MOST_LINKED } from "./open-with-input.ts";
import type { OperationDesk } from "./operation-desk.ts";
import { RunOutput } from "./run-output.tsx";
import { withoutSecrets } from "./without-secrets.ts";
import { useWorkspace } from "./workspace.ts";

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

/** What runs an operation, and what has to be said before; it stays in view below a long form. */
function RunBar({ desk }: { readonly desk: OperationDesk }) {
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
        <CopyButton
          label="Copy link"
          what="a link with this input, without secrets"
          text={() => linkTo(desk)}
        />
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

/** The address of the operation with what is typed: without secrets, and without an input that is too long for a link. */
function linkTo({ operation, value }: OperationDesk): string {
  const kept = withoutSecrets(operation.inputSchema, value);
  const json = kept?.value === undefined ? undefined : JSON.stringify(kept.value);
  const input = json !== undefined && json.length <= MOST_LINKED ? json : undefined;
  return `${location.origin}${location.pathname}${toHash("operations", operation.id, input)}`;
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
      The input does not fit its schema: {showCount(desk.issues.length, "problem")}. Correct what is marked,
      or
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

/** The inputs that an operation was run with before, to be taken up again or forgotten. */
function PastInputs({
  id,
  desk,
}: {
  /** What is closed once something is chosen. */
  readonly id: string;
  readonly desk: OperationDesk;
}) {
  const { history } = useWorkspace();
  const { say } = useSession();
  const operation = desk.operation.id;
  const inputs = history.inputs(operation);
  const take = ({ text, isPartial }: PastInput): void => {
    desk.replace(JSON.parse(text));
    if (isPartial) say("Secrets are not kept: fill them in.");
  };
  return (
    <>
      <h3>Inputs run before</h3>
      {inputs.length === 0 && (
        <p class="soft small">Nothing yet. Inputs you run are kept here, without secrets.</p>
      )}
      {inputs.map((past) => (
        <button type="button" class="quiet" key={past.text} popovertarget={id} onClick={() => take(past)}>
          <span class="mono cut">{visibleText(past.text, 120)}</span>
          <span class="soft small">
            {showAgo(past.at)}
            {past.isPartial && ", without secrets"}
          </span>
        </button>
      ))}
      {inputs.length > 0 && (
        <button type="button" popovertarget={id} onClick={() => history.forget(operation)}>
          Forget all
        </button>
      )}
    </>
  );
}
