import type { Hello, OperationView } from "./inspected-gateway.ts";

/** What the inspector's page knows of a gateway that asks for no token. */
export const hello = {
  isAuthOn: false,
  command: { words: "npx --no waybill", flags: "" },
} as Hello;

/** Where that gateway is. */
export const origin = "http://127.0.0.1:4100";

/** An operation whose call is copied, and whatever else a test is about. */
export function operation(over: Partial<OperationView> = {}): OperationView {
  const [namespace, name, version, description] = ["parcel", "list", "1.0.0", "Lists."];
  const http = { method: "GET", path: "/api/parcel/list" };
  return { id: "parcel.list", namespace, name, version, type: "query", description, http, ...over };
}
