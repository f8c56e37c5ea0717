import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { ROOT } from "./run-node.ts";

/** A file of this repository: its path from the root with forward slashes, and its text. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** Reads every TypeScript file below a folder of the repository, in a stable order. */
export function readSourceFiles(folder: string): SourceFile[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" });
  const paths = names
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => `${folder}/${name.replaceAll("\\", "/")}`);
  return paths.sort().map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

/** True for unit tests and type tests, which are not part of the package. */
export function isTestFile(path: string): boolean {
  return /\.test(-d)?\.tsx?$/.test(path);
}

/** Calls `visit` for every node of a parsed file, parents first. */
export function walk(file: SourceFile, visit: (node: ts.Node) => void): void {
  const parsed = ts.createSourceFile(file.path, file.text, ts.ScriptTarget.Latest, true);
  const descend = (node: ts.Node): void => {
    visit(node);
    ts.forEachChild(node, descend);
  };
  descend(parsed);
}
