import { CallError } from "../../core/errors/errors.ts";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { isSettled, type TaskBounds, type TaskRecord } from "../../core/tasks/task.ts";
import {
  MemoryTaskStore,
  type StoredTask,
  type TaskName,
  type TaskStore,
} from "../../core/tasks/task-store.ts";
import type { SharedState, StateAccess } from "./gateway-state.ts";
import {
  MOST_LISTED,
  type StateBounds,
  StateError,
  type StateName,
  type StateRecord,
  type StateStore,
  type StateWrite,
} from "./state-store.ts";

interface StateTasksOptions {
  readonly access: StateAccess;
  /** Names this process among the replicas. */
  readonly replica: string;
}

/** Texts that are kept beside a task, at most: its result, and that in other forms. */
const TEXTS = 16;
/** Tasks that are read at a time for a list. */
const READ_AT_ONCE = 32;

/** Keeps tasks in the store of the state; in this process where it turns out that there is none. */
export class StateTasks implements TaskStore {
  readonly replica: string;
  readonly #access: StateAccess;
  readonly #alone = new MemoryTaskStore();
  #shared: SharedState | undefined;
  #isAlone = false;

  constructor({ access, replica }: StateTasksOptions) {
    this.#access = access;
    this.replica = replica;
  }

  get isLasting(): boolean {
    return !this.#isAlone;
  }

  now(): number {
    return this.#shared?.store.now() ?? Date.now();
  }

  hold(): Promise<void> {
    return this.#ask(
      ({ lease }) => lease.hold(),
      (alone) => alone.hold(),
    );
  }

  isGone(replica: string): Promise<boolean> {
    return this.#ask(
      ({ lease }) => lease.isGone(replica),
      (alone) => alone.isGone(),
    );
  }

  create(task: TaskRecord, bounds: TaskBounds): Promise<number | undefined> {
    return this.#ask(
      async ({ store }) => {
        const created = await store.create(headName(task), encode(task), headWrite(task, bounds));
        return created.state === "created" ? created.revision : undefined;
      },
      (alone) => alone.create(task, bounds),
    );
  }

  get(name: TaskName): Promise<StoredTask | undefined> {
    return this.#ask(
      async ({ store }) => {
        const found = await read(store, headName(name));
        return found && { task: decode(found.value), revision: found.revision };
      },
      (alone) => alone.get(name),
    );
  }

  update(task: TaskRecord, revision: number, bounds: TaskBounds): Promise<number | "changed" | "full"> {
    return this.#ask(
      async ({ store }) => {
        const updated = await store.update(headName(task), revision, encode(task), headWrite(task, bounds));
        return updated.state === "updated" ? updated.revision : updated.state;
      },
      (alone) => alone.update(task, revision),
    );
  }

  keep(task: TaskRecord, key: string, text: string, bounds: TaskBounds): Promise<string | undefined> {
    return this.#ask(
      async ({ store }) => {
        const write = { expiresAt: task.expiresAt, bounds: textBounds(bounds) };
        const kept = await store.create(textName(task, key), new TextEncoder().encode(text), write);
        if (kept.state === "exists") return new TextDecoder().decode(kept.record.value);
        return kept.state === "created" ? text : undefined;
      },
      (alone) => alone.keep(task, key, text, bounds),
    );
  }

  kept(name: TaskName, key: string): Promise<string | undefined> {
    return this.#ask(
      async ({ store }) => {
        const found = await read(store, textName(name, key));
        return found && new TextDecoder().decode(found.value);
      },
      (alone) => alone.kept(name, key),
    );
  }

  list(owner: string): Promise<readonly TaskRecord[]> {
    return this.#ask(
      ({ store }) => this.#readAll(store, owner),
      (alone) => alone.list(owner),
    );
  }

  watch(name: TaskName, listener: () => void): () => void {
    const { store } = this.#shared ?? {};
    // A watcher has found the task before: the store is open, or there is none.
    return store === undefined ? this.#alone.watch(name, listener) : store.watch(headName(name), listener);
  }

  async #readAll(store: StateStore, owner: string): Promise<readonly TaskRecord[]> {
    const tasks: TaskRecord[] = [];
    let after: string | undefined;
    do {
      const ids = await store.list(TASKS, owner, { limit: MOST_LISTED, after });
      for (let at = 0; at < ids.length; at += READ_AT_ONCE) {
        const some = ids.slice(at, at + READ_AT_ONCE);
        const found = await Promise.all(some.map((id) => this.get({ owner, id })));
        for (const stored of found) if (stored !== undefined) tasks.push(stored.task);
      }
      after = ids.length < MOST_LISTED ? undefined : ids.at(-1);
    } while (after !== undefined);
    return tasks;
  }

  /** Asks the store, or this process where there is none; what keeps the store from answering passes. */
  async #ask<T>(
    shared: (state: SharedState) => Promise<T>,
    alone: (store: MemoryTaskStore) => Promise<T>,
  ): Promise<T> {
    if (this.#isAlone) return await alone(this.#alone);
    try {
      const state = await this.#access.reach();
      this.#shared = state;
      this.#isAlone = state === undefined;
      return await (state === undefined ? alone(this.#alone) : shared(state));
    } catch (thrown) {
      if (!(thrown instanceof StateError)) throw thrown;
      const message = "The tasks cannot be reached at the moment; try again later.";
      throw new CallError("UNAVAILABLE", message, { cause: thrown, stack: false });
    }
  }
}

const TASKS = "tasks";

function headName({ owner, id }: TaskName): StateName {
  return { collection: TASKS, owner, key: id };
}

function textName({ owner, id }: TaskName, key: string): StateName {
  return { collection: "task-texts", owner, key: JSON.stringify([id, key]) };
}

/** Reads a record. A broker that has just taken over may not have caught up: a task would be lost by that, or said not to exist. */
async function read(store: StateStore, name: StateName): Promise<StateRecord | undefined> {
  const found = await store.get(name);
  if (found !== undefined || !store.mayHave(name)) return found;
  throw new StateError("slow", "The broker does not have a record of a task yet that was written before.");
}

function headWrite(task: TaskRecord, { tasks, ownTasks, ...bounds }: TaskBounds): StateWrite {
  // What has ended holds little, and takes its place whatever else its owner keeps.
  const isBound = !isSettled(task);
  const bytes = isBound ? bounds.bytes : Number.POSITIVE_INFINITY;
  const ownBytes = isBound ? bounds.ownBytes : Number.POSITIVE_INFINITY;
  const { expiresAt } = task;
  return { expiresAt, listed: true, bounds: { records: tasks, ownRecords: ownTasks, bytes, ownBytes } };
}

function textBounds({ tasks, ownTasks, bytes, ownBytes }: TaskBounds): StateBounds {
  return { records: tasks * TEXTS, ownRecords: ownTasks * TEXTS, bytes, ownBytes };
}

function encode(task: TaskRecord): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(task));
}

/** Reads what another replica wrote. */
function decode(value: Uint8Array): TaskRecord {
  const task = parseJsonTextOrNone(new TextDecoder().decode(value));
  const isTask =
    isPlainObject(task) &&
    ["id", "owner", "operationId", "requestId", "status", "replica"].every(
      (name) => typeof task[name] === "string",
    ) &&
    ["createdAt", "updatedAt", "expiresAt"].every((name) => typeof task[name] === "number") &&
    isPlainObject(task["rights"]);
  if (!isTask) throw new StateError("damaged", "A task in the shared state cannot be read.");
  return task as unknown as TaskRecord;
}
