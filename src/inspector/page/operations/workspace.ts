import type { OperationsAnswer, OperationView } from "../../protocol.ts";
import type { Api } from "../connection/api.ts";
import { type Session, useSession } from "../session.ts";
import { browserStore, InputHistory } from "./input-history.ts";
import { keepDraft } from "./keep-draft.ts";
import { OperationDesk } from "./operation-desk.ts";
import type { Narrowing } from "./search-operations.ts";

const MOST_DESKS = 50;

/** What the view of operations holds while other views are shown: the list, what it was narrowed to, and what was tried. */
export class Workspace {
  readonly history: InputHistory;
  readonly drafts: InputHistory;
  readonly api: Api;
  readonly #desks = new Map<string, OperationDesk>();
  answer: OperationsAnswer | undefined;
  narrowing: Narrowing = { query: "" };

  constructor({ api, hello }: Session) {
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
