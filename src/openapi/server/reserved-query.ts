/** What a query says about the answer rather than the input. */
export interface ReservedQuery {
  /** What is left of the query. */
  readonly rest: string;
  readonly format: string | undefined;
  readonly lastEventId: string | undefined;
}

const PARAMETER = /^waybill-(format|last-event-id)=(.*)$/s;

/** Takes the parameters out of a query that every route understands. */
export function readReserved(query: string): ReservedQuery {
  if (!query.includes("waybill-")) return { rest: query, format: undefined, lastEventId: undefined };
  const found: { format?: string; "last-event-id"?: string } = {};
  const rest = query.split("&").filter((pair) => {
    const [, name, value = ""] = PARAMETER.exec(pair) ?? [];
    if (name === undefined) return true;
    found[name as keyof typeof found] = decode(value);
    return false;
  });
  return { rest: rest.join("&"), format: found.format, lastEventId: found["last-event-id"] };
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
