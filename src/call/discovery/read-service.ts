import { NOTICE_LIMITS } from "./notice-fields.ts";
import { reasonOf } from "./read-operation-notice.ts";

/** What a service says of itself, before its operations are looked at. */
export interface ServiceHeader {
  readonly serviceId: string;
  readonly name: string;
  readonly operations: readonly unknown[];
  /** Why what it offers cannot be read; there are no operations then. */
  readonly reason?: string;
}

const SERVICE_ID = /^(?:[A-Za-z0-9_-]{1,64}\.)?[A-Za-z0-9_-]+$/;

/** Tells whether a service may be known by this: letters, digits, `_` and `-`, not too many, and before them its user, if it has one. */
export function isServiceId(value: unknown): value is string {
  return typeof value === "string" && value.length <= NOTICE_LIMITS.serviceId && SERVICE_ID.test(value);
}

/** Reads what came from outside; `serviceId` is empty where there is none, and nothing is ever thrown. */
export function readService(value: unknown): ServiceHeader {
  let serviceId = "";
  try {
    const given = (value ?? {}) as { serviceId?: unknown; name?: unknown; operations?: unknown };
    const { serviceId: id } = given;
    if (!isServiceId(id)) throw new TypeError("A service without a usable serviceId.");
    serviceId = id;
    const { name, operations } = given;
    if (typeof name !== "string" || name.length > NOTICE_LIMITS.serviceName) {
      throw new TypeError(`Its name must be text of at most ${NOTICE_LIMITS.serviceName} characters.`);
    }
    if (!Array.isArray(operations)) throw new TypeError("Its operations must be a list.");
    return { serviceId, name, operations };
  } catch (thrown) {
    return { serviceId, name: "", operations: [], reason: reasonOf(thrown) };
  }
}
