// memoryd plugin for OpenCode 2.x. Written by `memory install opencode`; changes are overwritten.
//
// Sends what happens in sessions to memory-hook, one process per event. It never waits for it, and
// nothing that goes wrong here reaches OpenCode.
import { spawn } from "node:child_process"

const PROGRAM = "memory-hook"
const REMEMBERED = 1000

const send = (payload) => {
  try {
    const options = { cwd: payload.directory || undefined, stdio: ["pipe", "ignore", "ignore"] }
    const hook = spawn(PROGRAM, ["--agent", "opencode", payload.event], options)
    hook.on("error", () => {})
    hook.stdin.on("error", () => {})
    hook.stdin.end(JSON.stringify(payload))
    hook.unref()
  } catch {
    // capturing must never get in the way
  }
}

// A map that forgets its oldest entries.
const put = (map, key, value) => {
  map.delete(key)
  map.set(key, value)
  if (map.size > REMEMBERED) map.delete(map.keys().next().value)
}

const words = (error) => (typeof error === "string" ? error : error?.data?.message || error?.message || error?.name || "")

// What a tool gave back: text, or parts with text in them.
const outcome = (result) => {
  const content = result?.content ?? result?.output ?? result
  if (!Array.isArray(content)) return content
  const text = content.map((one) => (typeof one === "string" ? one : one?.text)).filter(Boolean)
  return text.length ? text.join("\n") : content
}

// One service hosts every open project, and each has its own copy of this plugin: they share what
// each has seen, so that an event is sent by the one whose directory it belongs to, and once.
const seen = (globalThis[Symbol.for("memoryd.seen")] ??= new Map())

const setup = async (ctx) => {
  const here = ctx.location?.directory
  const sessions = new Map() // session id: parent and directory
  const replies = new Map() // session id: the message under way and its text parts
  const stop = new AbortController()

  const session = async (sessionID) => {
    if (!sessions.has(sessionID)) {
      let info
      try {
        info = await ctx.session.get({ sessionID })
      } catch {
        info = undefined
      }
      put(sessions, sessionID, { parentID: info?.parentID, directory: info?.location?.directory })
    }
    return sessions.get(sessionID)
  }

  const tell = async (event, sessionID, time, more) => {
    try {
      const known = await session(sessionID)
      const common = { event, sessionID, directory: known.directory || here, time: time || Date.now() }
      send({ ...common, parentID: known.parentID, ...more })
    } catch {
      // capturing must never get in the way
    }
  }

  const reply = async (sessionID, time) => {
    const found = replies.get(sessionID)
    replies.delete(sessionID)
    const text = found?.parts.filter(Boolean).join("\n\n")
    if (text) await tell("message.completed", sessionID, time, { messageID: found.id, text })
  }

  const ended = async ({ sessionID }, time) => reply(sessionID, time)
  const events = {
    "session.created": async (data, time, event) => {
      const directory = (data.location || event.location)?.directory
      put(sessions, data.sessionID, { parentID: data.parentID, directory })
      await tell("session.start", data.sessionID, time, { title: data.title })
    },
    "session.text.ended": async (data, time) => {
      const known = replies.get(data.sessionID)
      if (known && known.id !== data.assistantMessageID) await reply(data.sessionID, time)
      const found = replies.get(data.sessionID) || { id: data.assistantMessageID, parts: [] }
      found.parts[data.ordinal ?? found.parts.length] = data.text
      put(replies, data.sessionID, found)
    },
    "session.execution.succeeded": ended,
    "session.execution.interrupted": ended,
    "session.execution.failed": async (data, time) => {
      await reply(data.sessionID, time)
      await tell("session.error", data.sessionID, time, { error: words(data.error) })
    },
    "session.compaction.ended": (data, time) =>
      tell("session.compacted", data.sessionID, time, { summary: data.text }),
    "session.deleted": async (data) => void sessions.delete(data.sessionID),
  }

  const mine = async (event) => {
    const where = event.location?.directory || (await session(event.data.sessionID)).directory
    if (here && where && here !== where) return false
    if (!event.id) return true
    if (seen.has(event.id)) return false
    put(seen, event.id, true)
    return true
  }

  const follow = async () => {
    for await (const event of ctx.event.subscribe({ signal: stop.signal })) {
      try {
        const handle = events[event.type]
        const time = typeof event.created === "number" ? event.created : undefined
        if (handle && event.data?.sessionID && (await mine(event))) await handle(event.data, time, event)
      } catch {
        // an event of a shape that is not known
      }
    }
  }
  follow().catch(() => {})

  try {
    await ctx.session.hook("prompt", (event) => {
      const text = event?.prompt?.text
      if (text && event.sessionID) void tell("chat.message", event.sessionID, undefined, { messageID: event.messageID, text })
    })
    await ctx.tool.hook("execute.after", (event) => {
      if (!event?.sessionID) return
      const call = { tool: event.tool, callID: event.id, args: event.input, agent: event.agent }
      const error = event.status === "error" ? words(event.error || event.result) || "failed" : undefined
      const output = error ? undefined : outcome(event.result)
      void tell("tool.execute.after", event.sessionID, undefined, { ...call, output, error })
    })
  } catch {
    // a version without these hooks
  }
  return () => stop.abort()
}

export default { id: "memoryd", setup }
