import type { OperationsAnswer, OperationView } from "../../protocol.ts";
import type { Api } from "../connection/api.ts";
import { isSameJson } from "../form/form-json.ts";
import { initialValue } from "../form/initial-value.ts";
import { type PageSession, useSession } from "../page-session.ts";
import { browserStore, InputHistory } from "./input-history.ts";
import { OperationDesk } from "./operation-desk.ts";
import type { Narrowing } from "./operation-groups.ts";

/** The operations that were found, and what was searched for. */
export interface FoundIds {
  readonly query: string;
  readonly ids: readonly string[];
}

const MOST_DESKS = 50;

/** What the view of operations holds while other views are shown: the list, what it was narrowed to, and what was tried. */
export class Workspace {
  readonly history: InputHistory;
  readonly drafts: InputHistory;
  readonly api: Api;
  readonly #desks = new Map<string, OperationDesk>();
  answer: OperationsAnswer | undefined;
  narrowing: Narrowing = { query: "" };
  found: FoundIds | undefined;
  /** Whether groups of operations that somebody folded or unfolded are open. */
  readonly folds = new Map<string, boolean>();

  constructor({ api, hello }: PageSession) {
    this.api = api;
    const scope = JSON.stringify([hello.name, hello.subject ?? ""]);
    this.history = new InputHistory(browserStore("localStorage"), scope);
    this.drafts = new InputHistory(browserStore("sessionStorage"), scope);
    // What is half typed is there again once the page was loaded anew.
    window.addEventListener("pagehide", () => {
      for (const desk of this.#desks.values()) keepDraft(this.drafts, desk);
    });
  }

  /** An operation as it was last seen. */
  known(id: string): OperationView | undefined {
    return this.#desks.get(id)?.operation;
  }

  /** The desk of an operation; the one used longest ago is let go. */
  desk(operation: OperationView): OperationDesk {
    const { id } = operation;
    const found = this.#desks.get(id) ?? new OperationDesk(operation, this);
    found.operation = operation;
    this.#desks.delete(id);
    this.#desks.set(id, found);
    this.close(MOST_DESKS);
    return found;
  }

  /** Ends everything that runs but the last few desks. */
  close(left = 0): void {
    for (const [id, desk] of [...this.#desks].slice(0, -left || undefined)) {
      desk.cancel();
      this.#desks.delete(id);
    }
  }
}

let current: Workspace | undefined;

/** The workspace of this session; that of another caller is closed. */
export function useWorkspace(): Workspace {
  const session = useSession();
  if (current?.api !== session.api) {
    current?.close();
    current = new Workspace(session);
  }
  return current;
}

/** Keeps what was typed at a desk, as far as it may be kept, in the place of what was kept of it before. */
export function keepDraft(drafts: InputHistory, desk: Pick<OperationDesk, "operation" | "value">): void {
  const { id, inputSchema } = desk.operation;
  drafts.forget(id);
  if (!isSameJson(desk.value, initialValue(inputSchema))) drafts.add(id, desk.value, inputSchema);
}
