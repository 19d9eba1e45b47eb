"""Makes the model that a user names, and describes the tools to it in the form that its API has."""

from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, ModelRequestParameters, infer_model, parse_model_id
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from handrail.chat.scripted import ScriptedModel
from handrail.errors import HandrailError
from handrail.tools.exports import api_name
from handrail.tools.router import ToolRouter

SCRIPTED = "scripted:"
_LIBRARY_ADVICE = " or pass it via"
"""Begins what the model library tells programs that use it: the user of a command can do nothing with that."""
_HOW = "Write PROVIDER:NAME, for example anthropic:claude-opus-5-5"


class ModelError(HandrailError):
    """The named model cannot be used."""


def model_of(name: str, base_url: str | None = None) -> Model:
    """Return the model for `provider:name`, `scripted:FILE`, or, with `base_url`, for a compatible server.

    Keys come from the environment or the provider's own configuration. Raises ModelError.
    """
    if name.startswith(SCRIPTED):
        return ScriptedModel.load(name.removeprefix(SCRIPTED))
    try:
        return _at(name, base_url) if base_url else _known(name)
    except (UserError, ValueError, ImportError) as error:
        said = str(error).partition(_LIBRARY_ADVICE)[0]
        raise ModelError(f"cannot use the model {name}: {said}", _HOW if name in said else "") from None


def _known(name: str) -> Model:
    """Return a model of a provider that the model library knows."""
    provider, model_name = parse_model_id(name)
    if provider not in ("openai", "openai-responses"):
        return infer_model(name)
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415  one provider is used

    from handrail.chat.openai_builtins import BuiltinItemsModel  # noqa: PLC0415  one provider is used

    return BuiltinItemsModel(model_name, provider=OpenAIProvider())


def _at(name: str, base_url: str) -> Model:
    """Return a model of a server that speaks the protocol of a provider."""
    provider, model_name = parse_model_id(name)
    if provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415  one provider is used
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415  one provider is used

        return AnthropicModel(model_name, provider=AnthropicProvider(base_url=base_url))
    if provider in ("google", "google-gla"):
        from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415  one provider is used
        from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415  one provider is used

        return GoogleModel(model_name, provider=GoogleProvider(base_url=base_url))
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415  one provider is used

    served = OpenAIProvider(base_url=base_url)
    if provider == "openai-responses":
        from handrail.chat.openai_builtins import BuiltinItemsModel  # noqa: PLC0415  one provider is used

        return BuiltinItemsModel(model_name, provider=served)
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415  one provider is used

    return OpenAIChatModel(model_name or name, provider=served)


def tool_parameters(router: ToolRouter) -> ModelRequestParameters:
    """Return the tools as the model library describes them."""
    tools = [
        ToolDefinition(
            name=api_name(tool.name),
            parameters_json_schema=tool.params.schema(),
            description=tool.description,
            strict=False,
        )
        for tool in router.tools.values()
    ]
    return ModelRequestParameters(function_tools=tools)


def model_settings(model: Model, router: ToolRouter) -> ModelSettings:
    """Return the settings of each request: the loop alone asks again, and the built-in tools of an API are offered."""
    settings = ModelSettings(max_retries=0)
    api = model.system if model.system == "anthropic" else getattr(model, "builtin_api", "")
    if any(tool.builtin_for(api) for tool in router.tools.values()):
        body: dict[str, Any] = {"tools": router.anthropic() if api == "anthropic" else router.openai_responses()}
        settings["extra_body"] = body
    return settings
