import { RootCommand } from "@bomb.sh/tab";
import { captureLog } from "./capture-log.ts";
import type { Shell } from "./commands/completion.ts";

/** The completion script of a shell. */
export async function completionScript(shell: Shell): Promise<string> {
  const script = captureLog(() => new RootCommand().setup("waybill", "waybill", shell));
  return shell === "bash" ? forAnyBash(script) : script;
}

const READ_WORDS = '_get_comp_words_by_ref -n "=:" cur prev words cword';

/** Works where the package bash-completion is not installed as well. */
const READ_WORDS_ANYWHERE = `if declare -F _get_comp_words_by_ref >/dev/null; then
        ${READ_WORDS}
    else
        words=("\${COMP_WORDS[@]}")
        cword=$COMP_CWORD
        cur=\${COMP_WORDS[COMP_CWORD]}
    fi`;

/** Asks with the words as they are: nothing that was typed is run before Enter is pressed. */
const ASK = `out=$(waybill complete -- "\${words[@]:1:$cword}" 2>/dev/null)`;

/** May be loaded twice, needs no other package, and never evaluates what was typed. */
function forAnyBash(script: string): string {
  return script
    .replaceAll(/^readonly (?=ShellCompDirective)/gm, "")
    .replace(READ_WORDS, () => READ_WORDS_ANYWHERE)
    .replace(
      /# Build the command to get completions[\s\S]*?out=\$\(eval "\$requestComp" 2>\/dev\/null\)/,
      () => ASK,
    );
}
