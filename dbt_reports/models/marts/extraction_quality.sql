with titles as (
    select
        title,
        lower(strip_accents(regexp_replace(title, '[\s\p{P}]', '', 'g'))) as folded
    from {{ ref('stg_entities') }}
),

counted (measure, number, out_of) as (
    select 'failed_chunks', count(*) filter (where status = 'failed'), count(*)
    from {{ ref('stg_extractions') }}
    union all
    select 'chunks_without_entities', count(*) filter (where status = 'ok' and n_entities = 0),
        count(*)
    from {{ ref('stg_extractions') }}
    union all
    select 'orphan_entities', count(*) filter (where degree = 0), count(*)
    from {{ ref('stg_entities') }}
    union all
    select 'entities_in_one_chunk', count(*) filter (where frequency <= 1), count(*)
    from {{ ref('stg_entities') }}
    union all
    select 'entities_without_description', count(*) filter (where trim(description) = ''), count(*)
    from {{ ref('stg_entities') }}
    union all
    select 'duplicate_titles', count(*) - count(distinct folded), count(*)
    from titles
    where folded <> ''
    union all
    select 'merged_titles', (select count(*) from {{ ref('stg_entity_aliases') }}),
        (select count(*) from {{ ref('stg_entities') }})
        + (select count(*) from {{ ref('stg_entity_aliases') }})
    union all
    select 'relationships_in_one_chunk', count(*) filter (where n_chunks = 1), count(*)
    from (
        select relationship_id, count(*) as n_chunks
        from {{ ref('stg_relationship_chunks') }}
        group by relationship_id
    )
    union all
    select 'evidence_without_span', count(*) filter (where start_char is null), count(*)
    from {{ ref('stg_relationship_chunks') }}
    union all
    select 'repeated_answers', greatest(count(*) - (
        select count(*) from {{ ref('stg_extractions') }} where extractor = 'llm'
    ), 0), count(*)
    from {{ ref('stg_llm_calls') }}
    where stage = 'extractions' and error is null
)

select
    measure,
    number,
    out_of,
    number / nullif(out_of, 0) as share,
    case measure
        when 'failed_chunks' then 'Chunks whose extraction failed; the next run tries them again.'
        when 'chunks_without_entities' then 'Chunks in which nothing was found.'
        when 'orphan_entities' then 'Entities without any relationship.'
        when 'entities_in_one_chunk' then 'Entities that a single chunk mentions.'
        when 'entities_without_description' then 'Entities of which the text says nothing.'
        when 'duplicate_titles'
            then 'Entities whose title differs from another only in case, accents or punctuation.'
        when 'merged_titles' then 'Titles that resolution folded into another, of all titles.'
        when 'relationships_in_one_chunk' then 'Relationships that a single chunk supports.'
        when 'evidence_without_span'
            then 'Evidence of relationships with no span of its own (imports): its chunk is quoted.'
        else 'Answers for extraction beyond one a chunk: gleaning, claims and second attempts.'
    end as meaning
from counted
