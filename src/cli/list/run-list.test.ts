import { afterEach, describe, expect, it } from "vitest";
import { type CommandProject, moduleOf, openProject } from "../../../test/command-project.ts";

let project: CommandProject;
afterEach(() => project.remove());

describe("waybill list with words", () => {
  it("lists what fits best first, in words of any number, and patterns by id", async () => {
    project = openProject({
      "ops/shop.mjs": ["create_order", "delete_order", "price"]
        .map((name) => moduleOf(`shop.${name}`))
        .join(""),
      "waybill.config.json": { operations: ["ops/*.mjs"] },
    });
    const idsOf = async (...words: readonly string[]): Promise<readonly string[]> => {
      const { code, out } = await project.run(["list", "--json", ...words]);
      expect(code).toBe(0);
      return JSON.parse(out).operations.map(({ id }: { id: string }) => id);
    };
    expect(await idsOf("orders")).toEqual(["shop.create_order", "shop.delete_order"]);
    expect(await idsOf("how", "do", "I", "remove", "an", "order?")).toEqual(["shop.delete_order"]);
    expect(await idsOf("remove an ordre")).toEqual(["shop.delete_order"]);
    expect(await idsOf("shop.{price,delete*}")).toEqual(["shop.delete_order", "shop.price"]);
    expect(await project.run(["list", "zebra"])).toMatchObject({
      code: 0,
      out: "",
      err: 'waybill: Nothing fits "zebra".\n',
    });
  });
});
