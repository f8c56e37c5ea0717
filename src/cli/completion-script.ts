import { RootCommand } from "@bomb.sh/tab";
import { captureLog } from "./capture-log.ts";
import type { Shell } from "./commands/completion.ts";

/** A piece of a script that is written in another way. */
type Replacement = readonly [found: string | RegExp, written: string];

/** Gives the completion script of a shell; nothing that was typed is evaluated before Enter is pressed. */
export async function completionScript(shell: Shell): Promise<string> {
  const script = captureLog(() => new RootCommand().setup("waybill", "waybill", shell));
  return REPLACEMENTS[shell].reduce(
    (text, [found, written]) => text.replaceAll(found, () => written),
    script,
  );
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

const REPLACEMENTS: Readonly<Record<Shell, readonly Replacement[]>> = {
  bash: [
    // May be loaded twice.
    [/^readonly (?=ShellCompDirective)/gm, ""],
    [READ_WORDS, READ_WORDS_ANYWHERE],
    [
      /# Build the command to get completions[\s\S]*?out=\$\(eval "\$requestComp" 2>\/dev\/null\)/g,
      `out=$(waybill complete -- "\${words[@]:1:$cword}" 2>/dev/null)`,
    ],
  ],
  zsh: [
    [
      /# Use Zsh's \(q\) flag to quote[\s\S]*?out=\$\(eval \$\{requestComp\} 2>\/dev\/null\)/g,
      `out=$(waybill complete -- "\${args_to_quote[@]}" 2>/dev/null)`,
    ],
    // The start of a flag that was typed, such as --config=, is handed on as one word.
    [/ flagPrefix requestComp out directive comp lastComp noSpace /g, " out directive comp lastComp "],
    ["local -a completions", "local -a completions flagPrefix noSpace"],
    [`flagPrefix="-P \${BASH_REMATCH}"`, `flagPrefix=(-P "\${BASH_REMATCH}")`],
    [`noSpace="-S ''"`, "noSpace=(-S '')"],
    [
      `eval _describe $keepOrder "completions" completions -Q \${flagPrefix} \${noSpace}`,
      `_describe $keepOrder "completions" completions -Q "\${flagPrefix[@]}" "\${noSpace[@]}"`,
    ],
    // Actions of _arguments are evaluated.
    [/" \$\{flagPrefix\}"/g, '""'],
  ],
  fish: [],
  // Typographic quotes end a text in PowerShell as plain ones do.
  powershell: [[`-replace "'", "''"`, `-replace "['\\u2018-\\u201b]", '$0$0'`]],
};
