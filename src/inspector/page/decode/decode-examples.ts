/** A text to try the view with. */
export interface DecodeExample {
  readonly title: string;
  readonly text: string;
}

/** One of each that people meet most. */
export const DECODE_EXAMPLES: readonly DecodeExample[] = [
  example("Text that holds JSON", {
    content: [textBlock('[{"day":"2026-10-13","parcels":61},{"day":"2026-10-14","parcels":74}]')],
  }),
  example("Tool envelope", {
    content: [textBlock("Parcel P-1042 is in transit; it left Hanau."), textBlock(envelopeBlock())],
  }),
  example("JSON-RPC answer", {
    jsonrpc: "2.0",
    id: 7,
    result: {
      content: [textBlock("There is no parcel P-9.")],
      structuredContent: { code: "NOT_FOUND", parcel: "P-9" },
      isError: true,
    },
  }),
];

function example(title: string, value: unknown): DecodeExample {
  return { title, text: JSON.stringify(value, null, 2) };
}

function textBlock(text: string): object {
  return { type: "text", text };
}

/** As `waybill encode --to tool-envelope` writes it. */
function envelopeBlock(): string {
  const envelope = {
    payload: { parcel: "P-1042", state: "in transit" },
    meta: { tool: "track", ts: "2026-10-14T19:05:12.000Z", version: 1 },
  };
  return `__ENVELOPE_V1__:${btoa(JSON.stringify(envelope))}`;
}
