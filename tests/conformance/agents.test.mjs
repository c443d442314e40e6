// Agents through the official SDK: started, heard, asked about, spoken to and stopped by a client.

import assert from "node:assert/strict";
import { approveAll } from "@github/copilot-sdk";
import { check, watched } from "./support.mjs";

const ofAgent = (id) => (event) => event.agentId === id;

check("an agent that a client starts is heard, asks for permission and rests with its answer", async (place) => {
  const asked = [];
  const { events, options } = watched({
    onPermissionRequest: (request) => {
      asked.push(request.fullCommandText);
      return { kind: "approve-once" };
    },
  });
  const session = await place.stdioClient().createSession(options);
  const { agentId } = await session.rpc.tasks.startAgent({
    agentType: "general-purpose",
    name: "worker",
    description: "Says hello",
    prompt: "run echo from the agent",
  });
  assert.equal(agentId, "worker");
  const started = await events.event("subagent.started", ofAgent(agentId));
  assert.equal(started.data.agentName, "general-purpose");
  assert.equal(started.data.executionMode, "background");
  const request = await events.event("permission.requested");
  assert.equal(request.agentId, agentId);
  const result = await events.event("tool.execution_complete", ofAgent(agentId));
  assert.match(result.data.result.content, /from the agent/);
  const told = await events.event("system.notification");
  assert.deepEqual([told.data.kind.type, told.data.kind.agentId], ["agent_idle", agentId]);
  await events.event("session.idle");
  assert.deepEqual(asked, ["echo from the agent"]);
  const { tasks } = await session.rpc.tasks.list();
  const [task] = tasks;
  assert.deepEqual([task.type, task.id, task.status, task.agentType], ["agent", agentId, "idle", "general-purpose"]);
  assert.match(task.latestResponse, /from the agent/);
});

check("an agent at rest takes another message and remembers", async (place) => {
  const { events, options } = watched({ onPermissionRequest: approveAll });
  const session = await place.stdioClient().createSession(options);
  await session.rpc.tasks.startAgent({ agentType: "general-purpose", name: "talker", prompt: "run echo first" });
  await events.event("session.idle");
  const { sent } = await session.rpc.tasks.sendMessage({ id: "talker", message: "run echo second" });
  assert.equal(sent, true);
  const second = (event) => ofAgent("talker")(event) && /second/.test(event.data.content);
  await events.event("assistant.message", second);
  await session.rpc.tasks.waitForPending();
  const { progress } = await session.rpc.tasks.getProgress({ id: "talker" });
  assert.equal(progress.type, "agent");
  assert.equal((await session.rpc.tasks.remove({ id: "talker" })).removed, true);
  assert.deepEqual((await session.rpc.tasks.list()).tasks, []);
});

check("an agent is stopped, and who does not exist is said to be so", async (place) => {
  const { events, options } = watched({ onPermissionRequest: approveAll });
  const session = await place.stdioClient().createSession(options);
  await session.rpc.tasks.startAgent({ agentType: "general-purpose", name: "slow", prompt: "run sleep 600" });
  await events.event("tool.execution_start", ofAgent("slow"));
  assert.equal((await session.rpc.tasks.cancel({ id: "slow" })).cancelled, true);
  const ended = await events.event("subagent.completed", ofAgent("slow"));
  assert.equal(ended.data.cancelled, true);
  const unknown = session.rpc.tasks.startAgent({ agentType: "nobody", name: "n", prompt: "hi" });
  await assert.rejects(unknown, /no agent `nobody`.*explore/);
  const { sent, error } = await session.rpc.tasks.sendMessage({ id: "ghost", message: "hi" });
  assert.equal(sent, false);
  assert.match(error, /slow/);
});

check("agents that the client defines are listed, started and selected", async (place) => {
  const { events, options } = watched({
    onPermissionRequest: approveAll,
    customAgents: [{ name: "greeter", displayName: "Greeter", description: "Greets", prompt: "You greet.", tools: ["bash"] }],
  });
  const session = await place.stdioClient().createSession(options);
  const { agents } = await session.rpc.agent.list();
  assert.deepEqual(agents.map(({ name }) => name), ["greeter"]);
  await session.rpc.tasks.startAgent({ agentType: "greeter", name: "g", prompt: "run echo good day" });
  await events.event("subagent.completed", ofAgent("g"));
  const { agent } = await session.rpc.agent.select({ name: "greeter" });
  assert.equal(agent.name, "greeter");
});
