// Writes the texts of a JSON array on standard output; ends with EXIT_CODE where there is one, else with its input.
for (const text of JSON.parse(process.argv[2])) process.stdout.write(text);
if (process.env.EXIT_CODE) process.exitCode = Number(process.env.EXIT_CODE);
else process.stdin.resume();
