import { describe, expect, it } from "vitest";
import { compileSchema } from "../src/index.ts";
import { readRemotes, readSuite } from "./json-schema-suite.ts";

describe("the required tests of the official JSON Schema suite", () => {
  const documents = readRemotes();
  for (const draft of ["draft2020-12", "draft7"]) {
    for (const codegen of [true, false]) {
      it(`RE-32 passes ${draft} ${codegen ? "compiled" : "without code generation"}`, () => {
        const dialect = draft === "draft7" ? "draft-07" : "2020-12";
        const failures: string[] = [];
        for (const { name, schema, data, valid } of readSuite(draft)) {
          let outcome: unknown;
          try {
            const compiled = compileSchema(schema, { documents, dialect, codegen });
            outcome = compiled.check(data);
            if (outcome !== (compiled.errors(data).length === 0)) outcome = "errors() disagrees";
            if (compiled.isClean(data) && outcome !== true) outcome = "isClean() disagrees";
          } catch (thrown) {
            outcome = String(thrown);
          }
          if (outcome !== valid) failures.push(`${name}: expected ${valid}, got ${outcome}`);
        }
        expect(failures).toEqual([]);
      });
    }
  }
});
