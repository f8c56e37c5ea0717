// @ts-check
// Loaded into the processes that are measured (`node --import`): tells over the IPC channel how much processor time has been used.
process.on("message", (message) => {
  if (message !== "cpu") return;
  const { user, system } = process.cpuUsage();
  process.send?.({ cpu: (user + system) * 1_000 });
});
process.once("disconnect", () => process.exit());
