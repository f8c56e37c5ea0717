/** Every requirement by id, in a few words of our own; the full text is in the project's requirements.md. */
export const REQUIREMENTS = {
  "RE-1": "one envelope type, meta told apart by its source",
  "RE-2": "local meta: operation id and timestamp",
  "RE-3": "HTTP meta: status, joined headers, content type, cookies apart",
  "RE-4": "MCP meta: error flag, every content block, structured content",
  "RE-5": "our own content block types, no SDK at the root",
  "RE-6": "three factories, whose source cannot be overridden",
  "RE-7": "a guard that checks each source's fields and never throws",
  "RE-8": "unwrap gives the data",
  "RE-9": "schemas for every envelope type",
  "RE-10": "execute: look up, access, input, run, wrap, check, normalise",
  "RE-11": "a handler's own envelope passes through untouched",
  "RE-12": "the output schema describes data; a mismatch warns or throws",
  "RE-13": "normalisation: strip, fill declared defaults, convert",
  "RE-14": "subscriptions wrap every yield",
  "RE-15": "handlers get a typed map of the other operations",
  "RE-16": "local handlers return plain values",
  "RE-17": "call events with schemas, envelopes in every response",
  "RE-18": "the call handler publishes, handlers only return",
  "RE-19": "a pending request accepts envelopes alone",
  "RE-20": "a throw is an error event, a tool error is a response",
  "RE-21": "subscriptions over the call protocol",
  "RE-22": "every tool of an MCP server becomes an operation",
  "RE-23": "MCP results become data, errors included",
  "RE-24": "content blocks map one to one",
  "RE-25": "every operation of an OpenAPI document becomes an operation",
  "RE-26": "response bodies read by media type",
  "RE-27": "a typed client that throws on tool errors and follows pages",
  "RE-28": "sequence number and cursor on every yield",
  "RE-29": "nobody answers someone else's request",
  "RE-30": "operations served over MCP and HTTP",
  "RE-31": "JSON in text blocks recovered and marked",
  "RE-32": "any declared JSON Schema works, nothing silently becomes unknown",

  "TE-1": "two text blocks, the second holding base64",
  "TE-2": "the published examples, byte for byte",
  "TE-3": "the writer and the block parser",
  "TE-4": "unsupported versions refused",
  "TE-5": "unknown fields and categories kept",
  "TE-6": "the text block as fallback, with the reason",
  "TE-7": "workflow and error payloads with schemas",
  "TE-8": "error results carry both blocks and their rendering",
  "TE-9": "a Python consumer reads the same vectors",

  "CS-1": "nine fields in order, on success and on error",
  "CS-2": "three tiers, a missing one never read as higher",
  "CS-3": "the caller's request id, or a new one",
  "CS-4": "duration from a monotonic clock",
  "CS-5": "the error object and its details",
  "CS-6": "no code and no stacks in errors",
  "CS-7": "the registry of error codes",
  "CS-8": "features above the tier answer with an upgrade hint",
  "CS-9": "operations declare tier and gated features",
  "CS-10": "the published examples survive a round trip",
  "CS-11": "how the envelope rides in a tool result",

  "TR-1": "the response meta and its envelope",
  "TR-2": "composing the payload block by block",
  "TR-3": "the error flag follows the status",
  "TR-4": "the whole envelope as output schema",
  "TR-5": "the structured builder and its deprecated twin",
  "TR-6": "previews cut to a budget stay valid",
  "TR-7": "errors carry next steps",
  "TR-8": "a lint rule against the deprecated builder",

  "X-1": "one canonical result, each format a codec",
  "X-2": "decoding says what it found",
  "X-3": "transcoding loses nothing, or says what",
  "X-4": "what arrives in _meta never overrides",
  "X-5": "one error table for every edge",
  "X-6": "serve then import gives the same registry back",
} as const satisfies Record<string, string>;

/** A requirement's id. */
export type RequirementId = keyof typeof REQUIREMENTS;

/** Requirements of later work. Ids leave this list when their tests arrive; none comes back. */
export const PENDING: readonly RequirementId[] = [];

/** How long `PENDING` is; lowered together with it, never raised. */
export const PENDING_COUNT = 0;
