import {
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import type { DurableNames } from "./durable-names.ts";
import type { DurableSettings } from "./durable-options.ts";

type Config = Pick<
  StreamConfig,
  | "name"
  | "subjects"
  | "retention"
  | "storage"
  | "num_replicas"
  | "max_age"
  | "duplicate_window"
  | "max_msgs_per_subject"
  | "discard"
  | "discard_new_per_subject"
>;

/** The answers to creating a stream that is there with other settings, or whose subjects are taken. */
const MADE_ALREADY: ReadonlySet<number> = new Set([10058, 10065]);
/** How long a stream that somebody else is making may stay invisible: attempts, and the pause between them. */
const RACE_ATTEMPTS = 20;
const RACE_PAUSE_MS = 50;

/** Makes both streams where they are missing; an `Error` names what is different in one that is there. */
export async function ensureStreams(
  manager: JetStreamManager,
  names: DurableNames,
  settings: DurableSettings,
): Promise<void> {
  await ensureStream(manager, configOf(names.calls, names.callSubjects, settings));
  await ensureStream(manager, configOf(names.results, names.resultSubjects, settings));
}

/** One message a subject, the first: the broker itself sees to it that neither requests nor results ever change. */
function configOf(name: string, subjects: string, settings: DurableSettings): Config {
  return {
    name,
    subjects: [subjects],
    retention: RetentionPolicy.Limits,
    storage: settings.storage === "file" ? StorageType.File : StorageType.Memory,
    num_replicas: settings.replicas,
    max_age: nanos(settings.keepMs),
    duplicate_window: nanos(settings.duplicateWindowMs),
    max_msgs_per_subject: 1,
    discard: DiscardPolicy.New,
    discard_new_per_subject: true,
  };
}

async function ensureStream(manager: JetStreamManager, wanted: Config): Promise<void> {
  const found = (await findStream(manager, wanted.name)) ?? (await addStream(manager, wanted));
  for (const field of Object.keys(wanted) as (keyof Config)[]) {
    if (JSON.stringify(found[field]) === JSON.stringify(wanted[field])) continue;
    throw new Error(
      `The stream "${wanted.name}" is there with another ${field}: ${JSON.stringify(found[field])} ` +
        `instead of ${JSON.stringify(wanted[field])}. Give every side the same options, or change the stream.`,
    );
  }
}

async function findStream(manager: JetStreamManager, name: string): Promise<StreamConfig | undefined> {
  try {
    return (await manager.streams.info(name)).config;
  } catch (thrown) {
    if (thrown instanceof JetStreamApiError && thrown.code === JetStreamApiCodes.StreamNotFound) {
      return undefined;
    }
    throw thrown;
  }
}

async function addStream(manager: JetStreamManager, wanted: Config): Promise<StreamConfig> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return (await manager.streams.add(wanted)).config;
    } catch (thrown) {
      if (!(thrown instanceof JetStreamApiError) || !MADE_ALREADY.has(thrown.code)) throw thrown;
      const found = await findStream(manager, wanted.name);
      if (found !== undefined) return found;
      // Either somebody else is making it and it cannot be seen yet, or another stream holds the subjects.
      if (attempt === RACE_ATTEMPTS) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, RACE_PAUSE_MS));
    }
  }
}
