import { join } from "node:path";
import ts from "typescript";
import { ROOT } from "./run-node.ts";

const OPTIONS: ts.CompilerOptions = {
  module: ts.ModuleKind.NodeNext,
  target: ts.ScriptTarget.ES2023,
  lib: ["lib.es2023.d.ts", "lib.dom.d.ts"],
  types: [],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
};

/** Type-checks programs as if they lay in the repository root, against the built package; what is wrong, by name. */
export function typeErrors<Name extends string>(
  programs: Readonly<Record<Name, string>>,
): Record<Name, string[]> {
  const texts = new Map(Object.entries<string>(programs).map(([name, text]) => [pathOf(name), text]));
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (file) => texts.has(file) || fileExists(file);
  host.getSourceFile = (file, version) => {
    const text = texts.get(file);
    return text === undefined ? getSourceFile(file, version) : ts.createSourceFile(file, text, version);
  };
  const program = ts.createProgram([...texts.keys()], OPTIONS, host);
  const errorsOf = (name: string) =>
    ts
      .getPreEmitDiagnostics(program, program.getSourceFile(pathOf(name)))
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
  return Object.fromEntries(Object.keys(programs).map((name) => [name, errorsOf(name)])) as Record<
    Name,
    string[]
  >;
}

function pathOf(name: string): string {
  return join(ROOT, `${name}.in-memory.ts`);
}

/** Takes the types off a program, so that plain Node runs it. */
export function toJavaScript(text: string): string {
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  return ts.transpileModule(text, { compilerOptions }).outputText;
}
