import { expect, it } from "vitest";
import { audienceOf } from "./token-key.ts";

it.each([
  ["note.read", "waybill:note"],
  ["note.read.all/now", "waybill:note"],
  ["note", "waybill:note"],
  [".read", "waybill:"],
  ["", "waybill:"],
])("Identity: a token for %j is for %j", (operationId, audience) => {
  expect(audienceOf(operationId)).toBe(audience);
});
