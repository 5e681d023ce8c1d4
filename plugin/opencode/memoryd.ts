// memoryd plugin for OpenCode 1.x. Written by `memory install opencode`; changes are overwritten.
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

export const MemorydPlugin = async ({ directory } = {}) => {
  const sessions = new Map() // session id: what session.created said of it
  const texts = new Map() // message id: its text parts, by part id
  const done = new Map() // replies and failed calls that were sent

  const common = (event, sessionID, time) => {
    const session = sessions.get(sessionID)
    const where = session?.directory || directory
    return { event, sessionID, directory: where, time: time || Date.now(), parentID: session?.parentID }
  }

  const once = (key) => {
    if (done.has(key)) return false
    put(done, key, true)
    return true
  }

  const part = (found) => {
    if (found?.type === "text" && !found.synthetic) {
      const known = texts.get(found.messageID) || new Map()
      known.set(found.id, found.text)
      put(texts, found.messageID, known)
    }
    if (found?.type === "tool" && found.state?.status === "error" && once(found.callID)) {
      const { input, error, time } = found.state
      const duration = time?.end && time?.start ? time.end - time.start : undefined
      const call = { tool: found.tool, callID: found.callID, args: input, error: words(error) || "failed", duration }
      send({ ...common("tool.execute.after", found.sessionID, time?.end), ...call })
    }
  }

  const message = (info) => {
    if (info?.role !== "assistant" || !info.time?.completed) return
    const text = [...(texts.get(info.id)?.values() || [])].filter(Boolean).join("\n\n")
    if (!text || !once(info.id)) return
    texts.delete(info.id)
    const model = info.providerID && info.modelID ? `${info.providerID}/${info.modelID}` : undefined
    const more = { messageID: info.id, model, agent: info.agent || info.mode }
    if (info.summary) {
      send({ ...common("session.compacted", info.sessionID, info.time.completed), ...more, summary: text })
    } else {
      send({ ...common("message.completed", info.sessionID, info.time.completed), ...more, text })
    }
  }

  const events = {
    "session.created": ({ info }) => {
      put(sessions, info.id, { parentID: info.parentID, directory: info.directory })
      send({ ...common("session.start", info.id, info.time?.created), title: info.title })
    },
    "session.updated": ({ info }) => {
      put(sessions, info.id, { parentID: info.parentID, directory: info.directory })
    },
    "message.part.updated": (properties) => part(properties.part),
    "message.updated": (properties) => message(properties.info),
    "session.error": ({ sessionID, error }) => {
      if (sessionID) send({ ...common("session.error", sessionID), error: words(error) })
    },
  }

  return {
    event: async ({ event }) => {
      try {
        events[event.type]?.(event.properties)
      } catch {
        // an event of a shape that is not known
      }
    },
    "chat.message": async (input, output) => {
      try {
        const said = output.parts.filter((one) => one.type === "text" && !one.synthetic)
        const text = said.map((one) => one.text).join("\n\n")
        const { providerID, modelID } = input.model || output.message?.model || {}
        const model = providerID && modelID ? `${providerID}/${modelID}` : undefined
        const more = { messageID: input.messageID || output.message?.id, agent: input.agent, model }
        if (text) send({ ...common("chat.message", input.sessionID), ...more, text })
      } catch {
        // a message of a shape that is not known
      }
    },
    "tool.execute.after": async (input, output) => {
      try {
        const call = { tool: input.tool, callID: input.callID, args: input.args }
        const result = { title: output?.title, output: output?.output }
        send({ ...common("tool.execute.after", input.sessionID), ...call, ...result })
      } catch {
        // a call of a shape that is not known
      }
    },
  }
}
