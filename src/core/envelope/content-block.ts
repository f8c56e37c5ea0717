/** Who a block is meant for, how much it matters, and when it last changed. */
export interface MCPAnnotations {
  readonly audience?: ("user" | "assistant")[];
  /** From 0 (least) to 1 (most). */
  readonly priority?: number;
  /** ISO 8601. */
  readonly lastModified?: string;
}

/** The contents of an embedded resource: text or base64 bytes, under a URI. */
export interface MCPResourceContent {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  readonly blob?: string;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** What every content block may carry. */
interface BlockExtras {
  readonly annotations?: MCPAnnotations;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** A block of text. */
export interface MCPTextBlock extends BlockExtras {
  readonly type: "text";
  readonly text: string;
}

/** An image, as base64. */
export interface MCPImageBlock extends BlockExtras {
  readonly type: "image";
  readonly data: string;
  readonly mimeType: string;
}

/** A sound, as base64. */
export interface MCPAudioBlock extends BlockExtras {
  readonly type: "audio";
  readonly data: string;
  readonly mimeType: string;
}

/** A resource carried whole inside the result. */
export interface MCPResourceBlock extends BlockExtras {
  readonly type: "resource";
  readonly resource: MCPResourceContent;
}

/** A pointer to a resource that can be read separately. */
export interface MCPResourceLinkBlock extends BlockExtras {
  readonly type: "resource_link";
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** Bytes, before any encoding. */
  readonly size?: number;
}

/** One piece of an MCP result; our own type, so that core needs no MCP SDK. */
export type MCPContentBlock =
  | MCPTextBlock
  | MCPImageBlock
  | MCPAudioBlock
  | MCPResourceBlock
  | MCPResourceLinkBlock;
