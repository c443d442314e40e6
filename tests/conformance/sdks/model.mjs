// A model for the programs beside it: chat completions on loopback, told what to do by the prompt.
//
//   say TEXT          answers TEXT, in pieces of a word each when the answer is streamed
//   call TOOL JSON    calls TOOL with these arguments; then answers `TOOL said: RESULT`
//
// Each request is checked as vendors check it: every call has one result, and no message is empty.

import { createServer } from "node:http";

/** What a message says, whether it is one text or several parts. */
function textOf({ content }) {
  return Array.isArray(content) ? content.map(({ text }) => text ?? "").join("\n") : (content ?? "");
}

/** What a vendor would refuse in a list of messages. */
export function faults(messages) {
  const found = [];
  let open = [];
  for (const [position, message] of messages.entries()) {
    if (message.role === "tool") {
      if (!open.includes(message.tool_call_id)) found.push(`message ${position} is the result of no open call`);
      open = open.filter((id) => id !== message.tool_call_id);
      continue;
    }
    if (open.length > 0) found.push(`message ${position} comes before the results of ${open.join(", ")}`);
    open = (message.tool_calls ?? []).map(({ id }) => id);
    if (textOf(message) === "" && open.length === 0) found.push(`message ${position} is empty`);
  }
  if (open.length > 0) found.push(`${open.join(", ")} have no result`);
  return found;
}

/** The answer to a conversation: `{ text }` or `{ call }`. */
function answer(messages) {
  const last = messages.at(-1);
  const order = messages.findLast(({ role }) => role === "user");
  const [, verb, rest] = /^(say|call) (.*)$/m.exec(order ? textOf(order) : "") ?? [];
  if (verb === "say") return { text: rest };
  if (verb !== "call") return { text: "I know only `say TEXT` and `call TOOL JSON`." };
  const [, name, input] = /^(\S+) (.*)$/.exec(rest);
  return last.role === "tool" ? { text: `${name} said: ${textOf(last)}` } : { call: { name, arguments: input } };
}

/** The body of a reply, as one object or as a stream of events. */
function encode({ text, call }, id, { stream, model }) {
  const calls = call && [{ index: 0, id: `call_${id}`, type: "function", function: call }];
  const finish_reason = call ? "tool_calls" : "stop";
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const envelope = { id: `reply_${id}`, created: 1, model };
  if (!stream) {
    const message = { role: "assistant", content: text ?? null, tool_calls: calls };
    return JSON.stringify({ ...envelope, object: "chat.completion", usage, choices: [{ index: 0, message, finish_reason }] });
  }
  const deltas = text?.match(/\s*\S+/g)?.map((content) => ({ content })) ?? [{ tool_calls: calls }];
  const chunks = [
    ...deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] })),
    { choices: [{ index: 0, delta: {}, finish_reason }] },
    { choices: [], usage },
  ].map((chunk) => JSON.stringify({ ...envelope, object: "chat.completion.chunk", ...chunk }));
  return [...chunks, "[DONE]"].map((line) => `data: ${line}\n\n`).join("");
}

/** Starts the model; `url` is its base, `faults` what was wrong in the requests so far. */
export async function startModel() {
  const model = { faults: [], replies: 0 };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (request.method !== "POST") return response.writeHead(404).end();
    const asked = JSON.parse(body);
    model.faults.push(...faults(asked.messages));
    model.replies += 1;
    response.setHeader("content-type", asked.stream ? "text/event-stream" : "application/json");
    response.end(encode(answer(asked.messages), model.replies, asked));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  model.url = `http://127.0.0.1:${server.address().port}`;
  model.stop = () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve)));
  return model;
}
