"""Generated from profiles/*.yaml by `make generate`, so that a start reads no YAML."""

# fmt: off
COMMANDS: dict[str, str] = {'aider': 'aider',
 'aider-chat': 'aider',
 'claude': 'claude',
 'claude-code': 'claude',
 'codex': 'codex',
 'gemini': 'gemini',
 'gemini-cli': 'gemini',
 'llm': 'llm',
 'mini': 'mini',
 'mini-swe-agent': 'mini',
 'minisweagent': 'mini',
 'opencode': 'opencode',
 'opencode-ai': 'opencode',
 'pi': 'pi',
 'pi-coding-agent': 'pi',
 'qwen': 'qwen',
 'qwen-code': 'qwen',
 'smolagent': 'smolagents',
 'webagent': 'smolagents',
 'smolagents': 'smolagents'}
