import { resolve } from "node:path";
import type { Hooks } from "../../core/execution/dispatch.ts";
import type { DecidedApproval } from "../approvals/approvals.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import type { GatewayLogger } from "../serve/observe/logger.ts";
import type { CallListener, CallRecord, ReadRecord } from "../serve/observe/observer.ts";
import { AuditFile, type AuditHead } from "./audit-file.ts";

/** How the audit of a gateway is doing, for metrics. */
export interface AuditStatus {
  /** The head that was told last. */
  readonly head: AuditHead;
  readonly dropped: number;
  readonly isFailing: boolean;
}

/** The audit of a gateway that runs. */
export interface AuditTrail extends CallListener {
  /** Refuse calls while records cannot be written, if the config asks for it; they stand inside of observers. */
  readonly hooks: Hooks;
  readonly status: AuditStatus;
  end(record: CallRecord): void;
  read(record: ReadRecord): void;
  decided(decided: DecidedApproval): void;
  close(): Promise<void>;
}

const TELL_MS = 60_000;

/** The audit file of a config; nothing where it has none. */
export function auditPath({ config, baseDir }: Pick<LoadedConfig, "config" | "baseDir">): string | undefined {
  return config.audit === undefined ? undefined : resolve(baseDir, config.audit.file);
}

/**
 * Opens the audit of a config, if it has one. Every minute in which there were records, and at the end, its head goes to the log and to
 * metrics: a program that can change the file cannot change those.
 */
export async function openAuditTrail(
  loaded: LoadedConfig,
  log: Pick<GatewayLogger, "info" | "warn" | "error">,
): Promise<AuditTrail | undefined> {
  const path = auditPath(loaded);
  if (path === undefined) return undefined;
  const file = await AuditFile.open(path, loaded.config.audit, (sentence, cause) => {
    if (cause === undefined) log.warn(sentence);
    else log.error(sentence, { cause: cause instanceof Error ? cause.message : String(cause) });
  });
  let told = file.head;
  const tell = async (): Promise<void> => {
    const { head } = file;
    if (head.seq === told.seq) return;
    await file.flush().catch(() => {});
    if (file.isFailing) return;
    told = head;
    log.info("audit head", { event: "audit", seq: head.seq, head: head.hash });
  };
  const timer = setInterval(() => void tell(), TELL_MS);
  timer.unref();
  return {
    hooks: file.hooks,
    get status() {
      return { head: told, dropped: file.dropped, isFailing: file.isFailing };
    },
    end({ isKnown: _, ...record }) {
      file.add({ event: "call", ...record });
    },
    read: (record) => file.add({ ...record }),
    decided: (decided) => file.add({ ...decided }),
    async close() {
      clearInterval(timer);
      await tell();
      await file.close();
    },
  };
}
