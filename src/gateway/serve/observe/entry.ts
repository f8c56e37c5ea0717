import type { ResponseEnvelope } from "../../../core/envelope/envelope.ts";
import type { Metadata } from "../../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../../core/operation/operation-types.ts";
import type {
  ChangeListener,
  ExecuteOptions,
  Executor,
  ListOptions,
} from "../../../core/registry/executor.ts";
import { forCallers } from "../../source-error.ts";
import type { CallEntry } from "./call-record.ts";
import type { CallTelemetry } from "./call-telemetry.ts";

/** Not a text, so that it goes on to nobody: what is sent on is JSON. */
const ENTRY = Symbol("waybill.entry");

/** What servers of a gateway run operations on. */
export type ServedGateway = Executor & { readonly operations: Iterable<AnyOperation> };

/** Says where a call came in; nothing where nobody said. */
export function entryOf(metadata: Metadata): CallEntry | undefined {
  return (metadata as { readonly [ENTRY]?: CallEntry })[ENTRY];
}

/** Says in the metadata of a call where it came in; where there is telemetry, its span begins. */
export function markEntry(metadata: Metadata, entry: CallEntry, telemetry?: CallTelemetry): Metadata {
  return { ...(telemetry?.begin(metadata) ?? metadata), [ENTRY]: entry };
}

/** The same executor for those who call from elsewhere: their calls are known to have come in here, and errors are in words for them; where there is telemetry, each begins a span. */
export function withEntry(
  executor: ServedGateway,
  entry: CallEntry,
  telemetry?: CallTelemetry,
): ServedGateway {
  return new EntryView(executor, entry, telemetry);
}

type Execute = (target: unknown, input: unknown, options: ExecuteOptions) => Promise<ResponseEnvelope>;
type Subscribe = (
  target: unknown,
  input: unknown,
  options: ExecuteOptions,
) => AsyncIterable<ResponseEnvelope>;

class EntryView implements ServedGateway {
  readonly #executor: ServedGateway;
  readonly #entry: CallEntry;
  readonly #telemetry: CallTelemetry | undefined;

  constructor(executor: ServedGateway, entry: CallEntry, telemetry: CallTelemetry | undefined) {
    this.#executor = executor;
    this.#entry = entry;
    this.#telemetry = telemetry;
  }

  get operations(): Iterable<AnyOperation> {
    return this.#executor.operations;
  }

  readonly execute = ((target: unknown, input: unknown, options?: ExecuteOptions) => {
    const execute = this.#executor.execute.bind(this.#executor) as unknown as Execute;
    return execute(target, input, { ...options, metadata: this.#mark(options?.metadata) }).catch(refuse);
  }) as Executor["execute"];

  readonly subscribe = ((target: unknown, input: unknown, options?: ExecuteOptions) => {
    const subscribe = this.#executor.subscribe.bind(this.#executor) as unknown as Subscribe;
    return refusing(subscribe(target, input, { ...options, metadata: this.#mark(options?.metadata) }));
  }) as Executor["subscribe"];

  list(options?: ListOptions): readonly AnyOperation[] {
    return this.#executor.list(options);
  }

  get(id: string): AnyOperation | undefined {
    return this.#executor.get(id);
  }

  onChange(listener: ChangeListener): () => void {
    return this.#executor.onChange(listener);
  }

  #mark(metadata: Metadata = {}): Metadata {
    return markEntry(metadata, this.#entry, this.#telemetry);
  }
}

function refuse(thrown: unknown): never {
  throw forCallers(thrown);
}

async function* refusing(
  stream: AsyncIterable<ResponseEnvelope>,
): AsyncGenerator<ResponseEnvelope, void, undefined> {
  try {
    yield* stream;
  } catch (thrown) {
    throw forCallers(thrown);
  }
}
