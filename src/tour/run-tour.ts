import { type Executor, type ResponseEnvelope, toCallError } from "../index.ts";
import { createParcelOffice } from "./parcel-office.ts";
import { type Answer, showStop } from "./show-stop.ts";
import { STOPS, type Stop } from "./stops.ts";

/** Settings of `runTour`. */
export interface TourOptions {
  readonly write: (text: string) => void;
  /** One line of JSON for each stop, for programs. @default false */
  readonly json?: boolean;
  /** @default false */
  readonly colors?: boolean;
}

/** Calls one operation after the other and writes down what comes back. */
export async function runTour({ write, json = false, colors = false }: TourOptions): Promise<void> {
  const office = createParcelOffice();
  if (!json) write(`A tour of Waybill: ${STOPS.length} calls into one registry, every outcome there is.\n`);
  for (const [index, stop] of STOPS.entries()) {
    const answer = await answerOf(office, stop);
    const place = { number: index + 1, total: STOPS.length };
    write(
      json
        ? `${JSON.stringify(toLine(stop, answer, place.number))}\n`
        : showStop(stop, answer, place, colors),
    );
  }
  if (!json) write("\nYour own first registry is 20 lines: see README.md.\n");
}

async function answerOf(office: Executor, stop: Stop): Promise<Answer> {
  try {
    const envelopes: ResponseEnvelope[] = [];
    if (stop.method === "subscribe") {
      for await (const envelope of office.subscribe(stop.operation, stop.input, stop.options))
        envelopes.push(envelope);
    } else {
      envelopes.push(await office.execute(stop.operation, stop.input, stop.options));
    }
    return { outcome: envelopes.some((envelope) => envelope.meta.isError) ? "tool error" : "ok", envelopes };
  } catch (thrown) {
    return { outcome: "call error", error: toCallError(thrown).toJSON() };
  }
}

function toLine(stop: Stop, answer: Answer, step: number): object {
  const { title, method = "execute", operation, input, options, why } = stop;
  return { step, title, method, operation, input, ...(options && { options }), ...answer, why };
}
