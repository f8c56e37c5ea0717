import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { AnyOperation, JsonSchema } from "../src/index.ts";
import { fromOpenApi } from "../src/openapi/index.ts";
import { query } from "./make-operation.ts";
import { ROOT } from "./run-node.ts";

const DATA = join(ROOT, "test/data");

interface Recording {
  readonly toolsList: readonly { readonly response: { readonly result: { readonly tools: Tool[] } } }[];
}
interface Tool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema?: JsonSchema;
}

/** The tools that recorded servers listed, as operations of a source of each server's name. */
export function recordedOperations(): readonly AnyOperation[] {
  return readdirSync(join(DATA, "recorded-servers")).flatMap((file) => {
    const { toolsList } = JSON.parse(readFileSync(join(DATA, "recorded-servers", file), "utf8")) as Recording;
    const tools = toolsList.flatMap(({ response }) => response.result.tools);
    return tools.map(({ name, title, description = "", inputSchema }) =>
      query(`${file.replace(".json", "")}.${name}`, () => 1, {
        ...(title !== undefined && { title }),
        description,
        ...(inputSchema !== undefined && { inputSchema }),
      }),
    );
  });
}

/** GitHub's operations, as they are imported. */
export async function githubOperations(): Promise<readonly AnyOperation[]> {
  const source = await fromOpenApi(JSON.parse(readFileSync(join(DATA, "github-api.json"), "utf8")), {
    namespace: "github",
  });
  const operations = [...source];
  await source.close();
  return operations;
}

/** Both, as one gateway would serve them. */
export async function corpusOperations(): Promise<readonly AnyOperation[]> {
  return [...recordedOperations(), ...(await githubOperations())];
}
