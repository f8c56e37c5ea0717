/** Whom the page talks to, and what it may see there. */
export interface Hello {
  /** What the gateway calls itself. */
  readonly name: string;
  /** Of Waybill. */
  readonly version: string;
  /** Whether callers have to say who they are. */
  readonly isAuthOn: boolean;
  /** Who is looking; nothing for an anonymous caller. */
  readonly subject?: string;
  /** Whether calls of others, and all about sources, are shown; else only what the caller may call and has called. */
  readonly isOperator: boolean;
  /** Paths at the gateway's own address, as far as they are served. */
  readonly places: {
    readonly mcp?: string;
    readonly api?: string;
    readonly document?: string;
    readonly docs?: string;
    readonly metrics?: string;
  };
  /** What is remembered of calls. */
  readonly kept: {
    readonly calls: number;
    readonly characters: number;
    /** Inputs and results that are longer are not kept. */
    readonly charactersEach: number;
  };
  /** How Waybill is started in a shell, such as `npx waybill`, with the flags that name what is mounted here; those are for operators. */
  readonly command: { readonly words: string; readonly flags: string };
}
