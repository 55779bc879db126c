"""A params file: one YAML per pool, checked before anything runs. Each block has a module."""

from auditlib.params.audit import EXTRACTORS, AuditParams, DesignParams, ModelParams
from auditlib.params.base import Address, ServedModel, Share
from auditlib.params.calibration import CalibrationParams
from auditlib.params.curation import AdjudicationParams, CurationParams, ReviewParams, RuleParams
from auditlib.params.data import DATA_PATHS, TOOLKITS, DataParams
from auditlib.params.dependence import AnnotationParams, ConditionNames, DependenceParams, FitParams, PriorParams
from auditlib.params.inference import InferenceParams, JudgeParams
from auditlib.params.judges import JudgesParams
from auditlib.params.loading import check_params, load_params
from auditlib.params.pool import BLIND_RUN, CAPABILITIES, STAGES, Params
from auditlib.params.sensitivity import AskParams, SensitivityParams

__all__ = [
    "BLIND_RUN",
    "CAPABILITIES",
    "DATA_PATHS",
    "EXTRACTORS",
    "STAGES",
    "TOOLKITS",
    "Address",
    "AdjudicationParams",
    "AnnotationParams",
    "AskParams",
    "AuditParams",
    "CalibrationParams",
    "ConditionNames",
    "CurationParams",
    "DataParams",
    "DependenceParams",
    "DesignParams",
    "FitParams",
    "InferenceParams",
    "JudgeParams",
    "JudgesParams",
    "ModelParams",
    "Params",
    "PriorParams",
    "ReviewParams",
    "RuleParams",
    "SensitivityParams",
    "ServedModel",
    "Share",
    "check_params",
    "load_params",
]
