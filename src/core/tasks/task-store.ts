import { KeyedListeners } from "../collections/listeners.ts";
import type { TaskBounds, TaskRecord } from "./task.ts";

/** Names a task: two owners never share one. */
export type TaskName = Pick<TaskRecord, "owner" | "id">;

/** A task as it was found. */
export interface StoredTask {
  readonly task: TaskRecord;
  /** Another one after every change. */
  readonly revision: number;
}

/**
 * Keeps tasks and their results, for one process or several. Every change is atomic: of several who change the same revision of a task, one
 * succeeds. What has expired is absent. A store that cannot be asked for the moment rejects with `UNAVAILABLE`.
 */
export interface TaskStore {
  /** Whether what is kept outlives this process. */
  readonly isLasting: boolean;
  /** Names this process among all that share the store. */
  readonly replica: string;
  /** Unix epoch milliseconds, on the clock that expiry is measured by. */
  now(): number;
  /** Resolves when others can see that this process is there. */
  hold(): Promise<void>;
  /** Whether a process is known to be gone. */
  isGone(replica: string): Promise<boolean>;
  /** Stores a task that nobody has; nothing where there is no room. */
  create(task: TaskRecord, bounds: TaskBounds): Promise<number | undefined>;
  get(name: TaskName): Promise<StoredTask | undefined>;
  /** Replaces a revision of a task, or says why not: it is gone or was changed, or there is no room. */
  update(task: TaskRecord, revision: number, bounds: TaskBounds): Promise<number | "changed" | "full">;
  /** Keeps a text beside a task unless there is one of that key, and gives the one that stands; nothing where there is no room. */
  keep(task: TaskRecord, key: string, text: string, bounds: TaskBounds): Promise<string | undefined>;
  /** The text beside a task. */
  kept(name: TaskName, key: string): Promise<string | undefined>;
  /** All tasks of an owner, in any order. */
  list(owner: string): Promise<readonly TaskRecord[]>;
  /** Hears that a task may have changed, through whichever process; returns how to stop. A change may be missed. */
  watch(name: TaskName, listener: () => void): () => void;
}

interface Entry {
  readonly task: TaskRecord;
  readonly revision: number;
  readonly texts: Map<string, string>;
}

interface Room {
  tasks: number;
  bytes: number;
}

/** Between two looks for what has expired, while there is room. */
const SWEEP_MS = 10_000;

/** Keeps tasks in this process; they end with it. */
export class MemoryTaskStore implements TaskStore {
  readonly isLasting = false;
  readonly replica = "here";
  readonly #entries = new Map<string, Entry>();
  readonly #rooms = new Map<string, Room>();
  readonly #watches = new KeyedListeners();
  readonly #clock: () => number;
  #bytes = 0;
  #revision = 0;
  #sweepAt = 0;

  /** With another clock than `Date.now`. */
  constructor(clock: () => number = Date.now) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock();
  }

  async hold(): Promise<void> {}

  async isGone(): Promise<boolean> {
    return false;
  }

  async create(task: TaskRecord, bounds: TaskBounds): Promise<number | undefined> {
    const isFull = (): boolean =>
      this.#entries.size >= bounds.tasks || (this.#rooms.get(task.owner)?.tasks ?? 0) >= bounds.ownTasks;
    if (this.now() >= this.#sweepAt || isFull()) this.#forgetExpired();
    if (isFull()) return undefined;
    const revision = ++this.#revision;
    this.#entries.set(taskKey(task), { task, revision, texts: new Map() });
    this.#count(task.owner, 1, 0);
    return revision;
  }

  async get(name: TaskName): Promise<StoredTask | undefined> {
    return this.#find(name);
  }

  async update(task: TaskRecord, revision: number): Promise<number | "changed" | "full"> {
    const entry = this.#find(task);
    if (entry?.revision !== revision) return "changed";
    const next = { ...entry, task, revision: ++this.#revision };
    this.#entries.set(taskKey(task), next);
    this.#watches.tell(taskKey(task));
    return next.revision;
  }

  async keep(task: TaskRecord, key: string, text: string, bounds: TaskBounds): Promise<string | undefined> {
    const entry = this.#find(task);
    if (entry === undefined) return undefined;
    const known = entry.texts.get(key);
    if (known !== undefined) return known;
    const bytes = new TextEncoder().encode(text).length;
    const isFull = (): boolean => {
      const own = this.#rooms.get(task.owner)?.bytes ?? 0;
      return this.#bytes + bytes > bounds.bytes || own + bytes > bounds.ownBytes;
    };
    if (isFull()) this.#forgetExpired();
    if (isFull()) return undefined;
    entry.texts.set(key, text);
    this.#count(task.owner, 0, bytes);
    return text;
  }

  async kept(name: TaskName, key: string): Promise<string | undefined> {
    return this.#find(name)?.texts.get(key);
  }

  async list(owner: string): Promise<readonly TaskRecord[]> {
    const now = this.now();
    return [...this.#entries.values()]
      .map(({ task }) => task)
      .filter((task) => task.owner === owner && task.expiresAt > now);
  }

  watch(name: TaskName, listener: () => void): () => void {
    return this.#watches.add(taskKey(name), listener);
  }

  #find(name: TaskName): Entry | undefined {
    const entry = this.#entries.get(taskKey(name));
    return entry !== undefined && entry.task.expiresAt > this.now() ? entry : undefined;
  }

  #forgetExpired(): void {
    const now = this.now();
    this.#sweepAt = now + SWEEP_MS;
    for (const [id, { task, texts }] of this.#entries) {
      if (task.expiresAt > now) continue;
      this.#entries.delete(id);
      let bytes = 0;
      for (const text of texts.values()) bytes += new TextEncoder().encode(text).length;
      this.#count(task.owner, -1, -bytes);
    }
  }

  #count(owner: string, tasks: number, bytes: number): void {
    const room = this.#rooms.get(owner) ?? { tasks: 0, bytes: 0 };
    room.tasks += tasks;
    room.bytes += bytes;
    this.#bytes += bytes;
    if (room.tasks === 0) this.#rooms.delete(owner);
    else this.#rooms.set(owner, room);
  }
}

/** One text for the name of a task; no two tasks share one. */
export function taskKey({ owner, id }: TaskName): string {
  return JSON.stringify([owner, id]);
}
