/** What is told about one read of a resource or a kept result, or one prompt that was filled in; never what it holds. */
export interface ReadRecord {
  readonly event: "resource" | "prompt" | "result";
  /** For a result that of its operation; empty where that is not known. */
  readonly source: string;
  /** The address of the resource or result, or the name of the prompt, as the source calls it; at most 200 characters of it. */
  readonly name: string;
  /** Nothing for an anonymous caller. */
  readonly subject?: string;
  readonly outcome: "ok" | "call_error";
  readonly code?: string;
  readonly durationMs: number;
}
