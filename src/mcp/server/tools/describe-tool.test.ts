import { describe, expect, it } from "vitest";
import { REFUSED, refusedOperations, toldOf } from "../../../../test/refused-schemas.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { createResultFormat } from "../../../formats/index.ts";
import type { Era } from "../../protocol/revisions.ts";
import { plainFormat } from "../results/plain-format.ts";
import type { DescribedTool } from "./describe-tool.ts";
import { ToolTable } from "./served-tools.ts";

describe("a tool whose schema is refused", () => {
  const eras: readonly Era[] = ["legacy", "modern"];
  const formats = [plainFormat, createResultFormat("tool-envelope"), createResultFormat("status-envelope")];

  it.each(eras.flatMap((era) => formats.map((format) => [era, format.name, format] as const)))(
    "Mcp: is listed beside the others, as if it took anything, with a warning: %s, %s",
    (era, _, format) => {
      const operations = refusedOperations();
      const warnings: string[] = [];
      const table = new ToolTable(
        new OperationRegistry(operations),
        {},
        {
          warn: (message) => warnings.push(message),
        },
      );
      const tools = JSON.parse(table.jsonOf(operations, era, format)) as DescribedTool[];
      expect(tools.map(({ name }) => name)).toEqual(operations.map((operation) => table.nameOf(operation)));
      const [fine, ...bad] = tools;
      expect(fine?.inputSchema).toHaveProperty("properties");
      for (const { inputSchema } of bad) expect(inputSchema).toEqual({ type: "object" });
      expect(toldOf(warnings)).toEqual(REFUSED);
    },
  );
});
