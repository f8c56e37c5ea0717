import { CallError } from "../../../core/errors/errors.ts";
import type { PinOptions } from "../import-options.ts";
import { LOCK_FILE_NAME, readLockFile, updateLockFile } from "./lock-file.ts";
import {
  type ApprovedTool,
  approve,
  createToolLock,
  type DefinitionChange,
  findApproved,
  findChange,
  readToolLock,
  type ToolDefinition,
  type ToolLock,
} from "./tool-lock.ts";

/** Holds the tools of one server to what was approved of them. */
export class ToolPin {
  readonly #namespace: string;
  readonly #file: string | undefined;
  #lock: ToolLock;

  private constructor(namespace: string, lock: ToolLock, file: string | undefined) {
    this.#namespace = namespace;
    this.#lock = lock;
    this.#file = file;
  }

  /** Reads what was approved; a file that is not there approves nothing. */
  static async open(namespace: string, pin: PinOptions): Promise<ToolPin> {
    if (pin !== true && "lock" in pin) return new ToolPin(namespace, readToolLock(pin.lock), undefined);
    const file = pin === true ? LOCK_FILE_NAME : pin.lockFile;
    if (typeof file !== "string" || file === "") {
      throw new TypeError("pin must be true, name a lockFile, or give a lock.");
    }
    return new ToolPin(namespace, (await readLockFile(file)) ?? createToolLock(), file);
  }

  get lock(): ToolLock {
    return this.#lock;
  }

  /** Takes over what others have approved in the file since. */
  async reread(): Promise<void> {
    if (this.#file !== undefined) this.#lock = (await readLockFile(this.#file)) ?? createToolLock();
  }

  /** Says why a tool is refused; nothing where it is as approved. */
  changeOf(definition: ToolDefinition): DefinitionChange | undefined {
    return findChange(this.#lock, this.#namespace, definition);
  }

  /** Gives a tool as it was approved. */
  approvedOf(tool: string): ApprovedTool | undefined {
    return findApproved(this.#lock, this.#namespace, tool);
  }

  /** Throws `DEFINITION_CHANGED` unless a tool is as approved; what it says now is told to nobody who calls it. */
  assertApproved(definition: ToolDefinition): void {
    const change = this.changeOf(definition);
    if (change === undefined) return;
    const tool = JSON.stringify(change.tool.slice(0, 200));
    const what =
      change.kind === "new"
        ? `The tool ${tool} of "${this.#namespace}" was never approved`
        : `The tool ${tool} of "${this.#namespace}" is no longer as it was approved`;
    throw new CallError(
      "DEFINITION_CHANGED",
      `${what}; look at the diff, then approve it: approveTools(source), or waybill lock --approve.`,
      { details: { tool: change.tool, kind: change.kind } },
    );
  }

  /** Approves tools as they are now, in the file too; what others approved there meanwhile is kept. */
  async approve(definitions: Iterable<ToolDefinition>): Promise<ToolLock> {
    const tools = [...definitions];
    const change = (known = this.#lock) => approve(known, this.#namespace, tools);
    this.#lock = this.#file === undefined ? change() : await updateLockFile(this.#file, change);
    return this.#lock;
  }
}
